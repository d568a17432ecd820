//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// The socket families that a session may use, with NETLINK for its routing
// protocol alone: what getifaddrs and friends need (D20).
const (
	familyUnix    = 1
	familyInet    = 2
	familyInet6   = 10
	familyNetlink = 16
	netlinkRoute  = 0
)

// denied are system calls that the engine project's default lets through and a
// session has no use for: a second way to do I/O past every filter, and reading
// or writing another process's memory. socketcall is the 32-bit way to make a
// socket, whose arguments no filter can see.
var denied = []string{"process_vm_readv", "process_vm_writev", "socketcall"}

const deniedPrefix = "io_uring_"

// render gives the profile as JSON, one rule a line, so that a change reads well
// as a diff.
//
// The base is what the engine project publishes. Sessions have no capabilities,
// so rules for holders of one are left out, and no architecture is listed but
// the native one, which the runtime adds by itself.
func render() ([]byte, error) {
	base := seccomp.DefaultProfile()
	if base.DefaultErrnoRet == nil || base.DefaultAction != specs.ActErrno {
		return nil, fmt.Errorf("the published default denies by %q: read it anew before it is built on", base.DefaultAction)
	}
	rules := socketRules()
	for _, rule := range base.Syscalls {
		if kept := keep(rule); kept != nil {
			rules = append(rules, kept)
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\n\"defaultAction\": %q,\n\"defaultErrnoRet\": %d,\n\"syscalls\": [\n", base.DefaultAction, *base.DefaultErrnoRet)
	for i, rule := range rules {
		line, err := json.Marshal(rule)
		if err != nil {
			return nil, err
		}
		out.Write(line)
		if i < len(rules)-1 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	out.WriteString("]\n}\n")
	return out.Bytes(), nil
}

// keep returns the rule as it stands for a container without capabilities, or
// nil when nothing of it is left.
func keep(rule *seccomp.Syscall) *seccomp.Syscall {
	if rule.Includes != nil && len(rule.Includes.Caps) > 0 {
		return nil
	}
	kept := *rule
	kept.Comment = ""
	kept.Names = slices.DeleteFunc(slices.Clone(rule.Names), func(name string) bool {
		return name == "socket" || name == "socketpair" || slices.Contains(denied, name) || strings.HasPrefix(name, deniedPrefix)
	})
	if len(kept.Names) == 0 {
		return nil
	}
	if rule.Excludes != nil {
		kept.Excludes = nil
		if len(rule.Excludes.Arches) > 0 {
			kept.Excludes = &seccomp.Filter{Arches: rule.Excludes.Arches}
		}
	}
	return &kept
}

func socketRules() []*seccomp.Syscall {
	family := func(n uint64) specs.LinuxSeccompArg {
		return specs.LinuxSeccompArg{Index: 0, Value: n, Op: specs.OpEqualTo}
	}
	allow := func(name string, args ...specs.LinuxSeccompArg) *seccomp.Syscall {
		return &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{Names: []string{name}, Action: specs.ActAllow, Args: args}}
	}
	return []*seccomp.Syscall{
		allow("socket", family(familyUnix)),
		allow("socket", family(familyInet)),
		allow("socket", family(familyInet6)),
		allow("socket", family(familyNetlink), specs.LinuxSeccompArg{Index: 2, Value: netlinkRoute, Op: specs.OpEqualTo}),
		allow("socketpair", family(familyUnix)),
	}
}
