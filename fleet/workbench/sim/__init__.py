"""The simulated device: stock firmware's side of the contract, with an audit of what the server does."""
