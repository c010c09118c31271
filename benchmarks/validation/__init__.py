"""When validation pays: policies on recorded trainings, and within live ones."""
