"""Accounts of operators: passwords, sign-ins, and what a browser sends of them."""
