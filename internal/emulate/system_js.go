package emulate

import "os"

// A page in a browser runs no programs; it only shows what others found.

func atEnd(*os.File) bool { return false }

func signalName(int) string { return "" }
