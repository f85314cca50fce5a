"""The bandwidth plan. Pure: values in, values out; the time is an argument."""
