package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sumsName is the file that names all others of a release with their sums, so
// that a signature of it is one of all.
const sumsName = "SHA256SUMS"

// signatureUse keeps a signature from being taken for one of something else
// (ssh-keygen(1), -n). signer is whom a key in signersName belongs to.
const (
	signatureUse = "memorymark-release"
	signer       = "release@memorymark"
	signersName  = "allowed_signers"
)

// makeKey makes the key that signs releases, and names its public half in
// allowed_signers, in the folder that the release is made in.
func makeKey(ctx context.Context, key string) error {
	if _, err := os.Stat(signersName); err == nil {
		return fmt.Errorf("%s names a key already; remove it to replace the key", signersName)
	}
	// It asks for a passphrase, and before it overwrites a key.
	if err := sshKeygen(ctx, "-t", "ed25519", "-C", signer, "-f", key); err != nil {
		return fmt.Errorf("make the key %s: %w", key, err)
	}
	if err := allow(key); err != nil {
		return err
	}
	fmt.Printf("%s holds the public key: commit it. Keep %s to yourself.\n", signersName, key)
	return nil
}

// allow writes allowed_signers: the key alone signs, and releases alone.
func allow(key string) error {
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		return err
	}
	return os.WriteFile(signersName, fmt.Appendf(nil, "%s namespaces=%q %s", signer, signatureUse, public), 0o644)
}

// checkKey says before anything is built why a release with this key would be
// worth nothing.
func (r *release) checkKey() error {
	if r.key == "" {
		return nil
	}
	if strings.HasSuffix(r.version, "-dirty") {
		return errors.New("there are changes that are in no commit, and no one could build the release again: commit them")
	}
	if _, err := os.Stat(signersName); err != nil {
		return fmt.Errorf("no one could verify the signature, because there is no %s: run make release-key, and commit it", signersName)
	}
	return nil
}

// unsigned is what to know of what was built without a key. Wheels alone are for
// this machine.
func (r *release) unsigned() string {
	if r.onlyWheels {
		return "the wheels are in " + r.out
	}
	return "UNSIGNED: do not publish this release. make release KEY=… signs it."
}

// sign signs the sums with a key of OpenSSH's, into SHA256SUMS.sig, and verifies
// that as docs/releases.md does.
func (r *release) sign(ctx context.Context) error {
	if r.key == "" {
		fmt.Println(r.unsigned())
		return nil
	}
	sums := filepath.Join(r.out, sumsName)
	if err := sshKeygen(ctx, "-q", "-Y", "sign", "-f", r.key, "-n", signatureUse, sums); err != nil {
		return fmt.Errorf("sign the release with %s: %w", r.key, err)
	}
	signed, err := os.Open(sums)
	if err != nil {
		return err
	}
	defer signed.Close()
	c := exec.CommandContext(ctx, "ssh-keygen", "-Y", "verify", "-f", signersName, "-I", signer, "-n", signatureUse, "-s", sums+".sig")
	c.Stdin = signed
	if out, err := c.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("the key %s is not the one in %s: %s", r.key, signersName, out), os.Remove(sums+".sig"))
	}
	fmt.Println("signed and verified with", signersName)
	return nil
}

// sshKeygen runs ssh-keygen where it can ask its user.
func sshKeygen(ctx context.Context, args ...string) error {
	c := exec.CommandContext(ctx, "ssh-keygen", args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	return c.Run()
}
