"""memdecay for vLLM: blocks of finished and paused requests are kept by memdecayd.

What it is: the package that `kv_connector_module_path` names; see README.md beside it. Importing
it needs neither vLLM nor a daemon: only connector.py imports vLLM.
"""
