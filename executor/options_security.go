package executor

import (
	"fmt"
	"slices"
	"strings"

	"caisson/sandbox"
)

// capabilities are the kernel's, without their common stem.
func capabilities() []string {
	return strings.Fields(`AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN
		DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN
		MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP
		SETUID SYSLOG SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO
		SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM`)
}

func readCapDrop(r *reader, o *Options, n node) {
	known := append([]string{everyCapability}, capabilities()...)
	var drop []string
	for i, text := range r.Texts(n, "cap_drop") {
		name := strings.TrimPrefix(strings.ToUpper(text), "CAP_")
		if !slices.Contains(known, name) {
			r.Add(n.Items[i].At, "there is no capability %s; %s", shown(text), meantOf(name, known))
			continue
		}
		drop = append(drop, name)
	}
	if slices.Contains(drop, everyCapability) {
		drop = []string{everyCapability} // the rest says nothing more
	}
	o.CapDrop = drop
}

// meantOf is meant for a list that is too long to be told.
func meantOf(name string, known []string) string {
	if text := meant(name, known); !strings.HasPrefix(text, "known are") {
		return text
	}
	return "ALL drops every one"
}

// readSecurityOpt brings the spellings of no-new-privileges together and keeps
// the rest as it is: each entry is a loosening, or may be one.
func readSecurityOpt(r *reader, o *Options, n node) {
	var all []string
	for i, text := range r.Texts(n, "security_opt") {
		name, value := sandbox.SecurityOption(text)
		switch name {
		case noNewPrivileges:
			switch value {
			case "", "true":
				text = noNewPrivileges
			case "false":
				text = noNewPrivileges + "=false"
			default:
				r.Add(n.Items[i].At, "no-new-privileges takes nothing, true or false, not %s", shown(value))
				continue
			}
		case "seccomp", "apparmor", "label", "systempaths":
			if value == "" {
				r.Add(n.Items[i].At, "security_opt %s needs a value", name)
				continue
			}
		default:
			r.Add(n.Items[i].At, "there is no security option %s; %s", shown(name), meant(name, []string{noNewPrivileges, "seccomp", "apparmor", "label", "systempaths"}))
			continue
		}
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	o.SecurityOpt = all
}

// loosenings says in what the options are weaker than the defaults (D31), a
// sentence each. What cannot be told to be as strong counts as weaker.
func (o Options) loosenings(s Server) []string {
	var all []string
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if o.Memory > defaultMemory {
		say("mem_limit %s is above %s", showBytes(o.Memory), showBytes(defaultMemory))
	}
	if o.NanoCPUs > defaultNanoCPUs {
		say("nano_cpus %d is above %d", o.NanoCPUs, defaultNanoCPUs)
	}
	if o.Pids > defaultPids {
		say("pids_limit %d is above %d", o.Pids, defaultPids)
	}
	if !slices.Contains(o.CapDrop, everyCapability) {
		say("cap_drop without ALL leaves capabilities")
	}
	if !slices.Contains(o.SecurityOpt, noNewPrivileges) {
		say("security_opt leaves %s out", noNewPrivileges)
	}
	for _, entry := range o.SecurityOpt {
		if entry != noNewPrivileges {
			say("security_opt %s replaces a protection of the server's own", shown(entry))
		}
	}
	if o.Runtime != s.Runtime && o.Runtime != s.VMRuntime {
		say("runtime %s is not one that the server's settings name", shown(o.Runtime))
	}
	return all
}

// over says which ceiling of the server the options exceed, or nothing.
func (o Options) over(s Server) string {
	switch {
	case s.MaxNetwork != "" && o.Network.Looser(s.MaxNetwork):
		return fmt.Sprintf("network_mode %s is looser than %s, the loosest that this server allows", o.Network, s.MaxNetwork)
	case s.MaxNanoCPUs > 0 && o.NanoCPUs > s.MaxNanoCPUs:
		return fmt.Sprintf("nano_cpus %d is above %d, the most that this server gives", o.NanoCPUs, s.MaxNanoCPUs)
	case s.MaxMemory > 0 && o.Memory > s.MaxMemory:
		return fmt.Sprintf("mem_limit %s is above %s, the most that this server gives", showBytes(o.Memory), showBytes(s.MaxMemory))
	case s.MaxPids > 0 && o.Pids > s.MaxPids:
		return fmt.Sprintf("pids_limit %d is above %d, the most that this server gives", o.Pids, s.MaxPids)
	default:
		return ""
	}
}
