package job

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/minio/highwayhash"
)

// A stream and a consumer have their settings in meta.inf, and its checksum in
// meta.sum.
const (
	settingsFile = "meta.inf"
	sumFile      = "meta.sum"
	progressFile = "o.dat" // what was delivered by a consumer
)

// settings checks those of a stream. Without them the engine does not see it.
func (c *check) settings(folder string) error {
	data, sum, err := readSettings(folder)
	if err != nil {
		return nil //nolint:nilerr // it was being made when everything stopped
	}
	name := filepath.Base(folder)
	if settingsSum(name, data) == sum {
		return nil
	}
	d := Damage{File: c.name(filepath.Join(folder, settingsFile)), Restored: true, Outcome: "one bit of it or its checksum was flipped; it is flipped back"}
	if !flipBack(data, func() bool { return settingsSum(name, data) == sum }) && !oneBitApart(settingsSum(name, data), sum) {
		d.Restored, d.Outcome = false, "the settings of the stream do not fit their checksum; restore a backup"
	}
	c.Damages = append(c.Damages, d)
	if !c.repair || !d.Restored {
		return nil
	}
	if err := writeWhole(filepath.Join(folder, settingsFile), data); err != nil {
		return err
	}
	return writeWhole(filepath.Join(folder, sumFile), []byte(settingsSum(name, data)))
}

// consumers checks those of a stream. A damaged one is removed. It is made again,
// and begins with the first job that has not ended.
func (c *check) consumers(folder string) error {
	paths, err := filepath.Glob(filepath.Join(folder, "obs", "*"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		data, sum, err := readSettings(path)
		if err == nil && settingsSum(filepath.Base(folder)+"/"+filepath.Base(path), data) == sum && progressReadable(path) {
			continue
		}
		c.Damages = append(c.Damages, Damage{File: c.name(path), Restored: true, Outcome: "it is not known any more which jobs were handed out; those that have not ended are offered again"})
		if !c.repair {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// progressReadable reports whether the engine can read what was delivered: two
// bytes for the version; four numbers; how many messages were handed out, since
// when, and each; how many of them again, and each (nats-server's
// decodeConsumerState). There is no checksum; numbers that are readable and wrong
// are for repair to notice.
func progressReadable(consumer string) bool {
	data, err := os.ReadFile(filepath.Join(consumer, progressFile))
	if err != nil {
		return os.IsNotExist(err)
	}
	if len(data) < 2 || data[0] != 22 || data[1] != 2 {
		return false
	}
	data = data[2:]
	numbers := func(count uint64) (last uint64, ok bool) {
		for range count {
			value, n := binary.Uvarint(data)
			if n <= 0 {
				return 0, false
			}
			last, data = value, data[n:]
		}
		return last, true
	}
	handedOut, ok := numbers(5)
	if ok && handedOut > 0 {
		_, ok = numbers(1 + 3*min(handedOut, maxQueued+1))
	}
	again, okAgain := numbers(1)
	if okAgain && again > 0 {
		_, okAgain = numbers(2 * min(again, maxQueued+1))
	}
	return ok && okAgain
}

func readSettings(folder string) (data []byte, sum string, err error) {
	if data, err = os.ReadFile(filepath.Join(folder, settingsFile)); err != nil {
		return nil, "", err
	}
	text, err := os.ReadFile(filepath.Join(folder, sumFile))
	return data, string(text), err
}

func settingsSum(name string, data []byte) string {
	key := sha256.Sum256([]byte(name))
	sum, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		panic(fmt.Sprintf("a key of 32 bytes: %v", err))
	}
	_, _ = sum.Write(data) // a hash takes all
	return hex.EncodeToString(sum.Sum(nil))
}

// flipBack tries every bit until something holds.
func flipBack(data []byte, holds func() bool) bool {
	for i := range data {
		for bit := range 8 {
			data[i] ^= 1 << bit
			if holds() {
				return true
			}
			data[i] ^= 1 << bit
		}
	}
	return false
}

func oneBitApart(a, b string) bool {
	data := []byte(b)
	return flipBack(data, func() bool { return string(data) == a })
}
