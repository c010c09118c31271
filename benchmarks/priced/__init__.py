"""Does a rule that weighs what a look earns beat one that asks whether the incumbent is surely best?"""
