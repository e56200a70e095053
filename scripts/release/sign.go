package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// sumsName is the file that names all others of a release with their sums, so
// that a signature of it is one of all.
const sumsName = "SHA256SUMS"

// signatureUse keeps a signature from being taken for one of something else
// (ssh-keygen(1), -n).
const signatureUse = "memorymark-release"

// sign signs the sums with a key of OpenSSH's, into SHA256SUMS.sig. How to check
// it is in docs/releases.md.
func (r *release) sign(ctx context.Context) error {
	if r.key == "" {
		fmt.Println("the release is not signed; -key names the key to sign it with")
		return nil
	}
	c := exec.CommandContext(ctx, "ssh-keygen", "-q", "-Y", "sign", "-f", r.key, "-n", signatureUse, filepath.Join(r.out, sumsName))
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr // it may ask for a passphrase
	if err := c.Run(); err != nil {
		return fmt.Errorf("sign the release with %s: %w", r.key, err)
	}
	return nil
}
