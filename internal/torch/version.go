package torch

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is a release of a library: its first two numbers.
type Version struct{ Major, Minor int }

// ParseVersion reads a version as the libraries state it: "2.11.0+cu130" is 2.11.
func ParseVersion(s string) (Version, error) {
	first, rest, _ := strings.Cut(s, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.ParseUint(first, 10, 16)
	if err != nil {
		return Version{}, fmt.Errorf("%q is not a version such as 2.11", s)
	}
	minor, err := strconv.ParseUint(second, 10, 16)
	if err != nil {
		return Version{}, fmt.Errorf("%q is not a version such as 2.11", s)
	}
	return Version{int(major), int(minor)}, nil
}

// Before reports whether a version came out before another.
func (v Version) Before(major, minor int) bool {
	return v.Major < major || v.Major == major && v.Minor < minor
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// MarshalText writes a version as in "2.11".
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText is ParseVersion.
func (v *Version) UnmarshalText(text []byte) error {
	parsed, err := ParseVersion(string(text))
	*v = parsed
	return err
}
