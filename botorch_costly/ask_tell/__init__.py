"""What all optimizers share: asking and telling, the ledger, the state, designs and searches."""
