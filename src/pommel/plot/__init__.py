"""Pictures, with matplotlib. Each function draws into axes it is given."""
