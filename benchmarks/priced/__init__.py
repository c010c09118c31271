"""Does a rule that weighs what a query earns beat one that asks whether the candidate is surely best?"""
