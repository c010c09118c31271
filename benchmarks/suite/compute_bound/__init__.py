"""Problems whose loss is still falling at the end of a run: each round at a bad setting is lost."""
