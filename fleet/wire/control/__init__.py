"""Requests and answers of the API of control, one file per noun."""
