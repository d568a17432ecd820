package docker

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"caisson/sandbox"
)

// entryTypes are find's letters and, below, the kernel's bits.
var entryTypes = map[string]string{
	"f": "file", "d": "directory", "l": "link", "p": "fifo", "s": "socket", "b": "device", "c": "device",
}

var kernelTypes = map[uint64]string{
	0o10: "file", 0o04: "directory", 0o12: "link", 0o01: "fifo", 0o14: "socket", 0o06: "device", 0o02: "device",
}

// parseEntry reads "TYPE MODE SIZE MTIME", a path and a link's target. With the
// type x the mode is the kernel's, in hex.
func parseEntry(fields []string) (sandbox.DirEntry, error) {
	words := strings.Fields(fields[0])
	if len(words) != 4 {
		return sandbox.DirEntry{}, fmt.Errorf("entry %q", fields[0])
	}
	kind, mode, err := parseKind(words[0], words[1])
	if err != nil {
		return sandbox.DirEntry{}, err
	}
	size, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return sandbox.DirEntry{}, err
	}
	at, err := parseTime(words[3])
	if err != nil {
		return sandbox.DirEntry{}, err
	}
	return sandbox.DirEntry{Path: strings.Clone(fields[1]), Type: kind, Size: size, Mode: mode, ModifiedAt: at, LinkTarget: strings.Clone(fields[2])}, nil
}

func parseKind(letter, mode string) (string, fs.FileMode, error) {
	base := 8
	if letter == "x" {
		base = 16
	}
	bits, err := strconv.ParseUint(mode, base, 32)
	if err != nil {
		return "", 0, err
	}
	kind, ok := entryTypes[letter]
	if letter == "x" {
		kind, ok = kernelTypes[bits>>12]
	}
	if !ok {
		return "", 0, fmt.Errorf("file type %q %q", letter, mode)
	}
	return kind, unixMode(uint32(bits & 0o7777)), nil
}

// parseTime reads seconds since 1970 with find's ten digits of fraction, or none.
func parseTime(text string) (time.Time, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	sec, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	var nsec int64
	if fraction != "" {
		if nsec, err = strconv.ParseInt((fraction + "000000000")[:9], 10, 64); err != nil {
			return time.Time{}, err
		}
	}
	return time.Unix(sec, nsec).UTC(), nil
}
