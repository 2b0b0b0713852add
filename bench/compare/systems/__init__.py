"""What is compared: headrace and its rivals, each behind the interface of base.py."""
