"""Says, as one line of JSON, where this interpreter has its files: all that it imports from."""

import json
import os
import site
import sys

folders = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
folders.update(path for path in sys.path if os.path.isdir(path) and path != os.getcwd())
user_base = site.getuserbase() if site.ENABLE_USER_SITE and site.getusersitepackages() in sys.path else ""
print(json.dumps({"executable": sys.executable, "folders": sorted(map(os.path.abspath, folders)), "user_base": user_base}))
