"""The gateway's port: who may connect, what each connection may do, plain HTTP and the test page."""
