package executor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"caisson/sandbox"
)

// The docker executor's defaults that no setting changes (TX-12).
const (
	defaultMemory   = 512 << 20   // bytes
	defaultNanoCPUs = 500_000_000 // half a CPU
	defaultPids     = 256
	noNewPrivileges = "no-new-privileges"
	everyCapability = "ALL"
)

// Options are what a docker executor's containers are made with, defaults filled.
type Options struct {
	Image       string
	Mode        Mode
	IdleTTL     time.Duration // of a warm container, without calls
	Network     sandbox.Network
	Memory      int64 // bytes
	NanoCPUs    int64 // billionths of a CPU
	Pids        int64
	CapDrop     []string
	SecurityOpt []string
	Env         map[string]sandbox.Secret
	Labels      map[string]string
	PullPolicy  string
	Runtime     string // empty: the engine's own
	User        string // empty: the image's, never root

	given   map[string]bool // the names that the manifest sets
	missing []string        // variables that env names and that are not set
}

// defaults are the options of a rule that sets none.
func (s Server) defaults() Options {
	return Options{
		Image: s.Image, Mode: s.Mode, IdleTTL: s.IdleTTL, Network: s.Network,
		Memory: defaultMemory, NanoCPUs: defaultNanoCPUs, Pids: defaultPids,
		CapDrop: []string{everyCapability}, SecurityOpt: []string{noNewPrivileges},
		PullPolicy: s.PullPolicy, Runtime: s.Runtime, given: map[string]bool{},
	}
}

// option is one row of the table of options.
type option struct {
	name    string
	takes   string
	def     string // as the documentation shows it; a setting's name where one decides
	meaning string
	read    func(r *reader, o *Options, value node)
	show    func(o Options) string
	local   bool // the local executor takes it too
}

// optionTable is every option, in the order of the documentation.
func optionTable() []option {
	return []option{
		{"image", "the name of an image", "SANDBOX_DOCKER_TOOL_IMAGE", "Image of the container. It must have the worker in it.", readImage, func(o Options) string { return o.Image }, false},
		{"mode", "warm or ephemeral", "SANDBOX_DOCKER_EXECUTOR_MODE", "One container that calls share until it is idle, or one for each call.", readMode, func(o Options) string { return string(o.Mode) }, false},
		{"idle_ttl_seconds", "a number from 1 to 31536000", "SANDBOX_DOCKER_IDLE_TTL_SECONDS", "Time without calls after which a warm container is removed.", readIdleTTL, func(o Options) string { return seconds(o.IdleTTL) }, false},
		{"network_mode", "none, internal, egress or bridge", "SANDBOX_DOCKER_NETWORK_MODE", "Network tier; bridge is another word for egress. SANDBOX_DOCKER_MAX_NETWORK bounds it.", readNetwork, func(o Options) string { return string(o.Network) }, false},
		{"mem_limit", "bytes, or digits and one of b, k, m, g", "512m", "Memory, swap included. More is a loosening.", readMemory, func(o Options) string { return showBytes(o.Memory) }, false},
		{"nano_cpus", "a whole number from 10000000", "500000000", "Billionths of a CPU. More is a loosening.", readNanoCPUs, func(o Options) string { return strconv.FormatInt(o.NanoCPUs, 10) }, false},
		{"pids_limit", "a whole number from 16 to 4194304", "256", "Processes and threads. More is a loosening.", readPids, func(o Options) string { return strconv.FormatInt(o.Pids, 10) }, false},
		{"cap_drop", "a list of capabilities, or ALL", "ALL", "Capabilities to drop. A list without ALL is a loosening.", readCapDrop, func(o Options) string { return strings.Join(o.CapDrop, ", ") }, false},
		{"security_opt", "a list of security options", noNewPrivileges, "Security options. Leaving no-new-privileges out is a loosening, and so is every other entry.", readSecurityOpt, func(o Options) string { return strings.Join(o.SecurityOpt, ", ") }, false},
		{"env", "a mapping of names to strings", "none", "Environment of the tool, such as an agent's credentials. Values may hold ${VAR}, a variable of the server. No inspect shows it, but for PATH; whoever may run commands in containers of the engine can read it.", readEnv, showEnv, true},
		{"labels", "a mapping of names to strings", "none", "Labels of the container, beside the server's own.", readLabels, showLabels, false},
		{"pull_policy", "missing, never or always", "SANDBOX_DOCKER_PULL_POLICY", "When the image is pulled.", readPullPolicy, func(o Options) string { return o.PullPolicy }, false},
		{"runtime", "the name of an OCI runtime on the engine", "SANDBOX_DOCKER_RUNTIME", "OCI runtime. One that no setting of the server names is a loosening.", readRuntime, func(o Options) string { return orWords(o.Runtime, "the engine's own") }, false},
		{"user", "a user, or user:group, that is not root", "the image's", "User that the tool runs as.", readUser, func(o Options) string { return orWords(o.User, "the image's") }, false},
	}
}

// OptionRow is one option as documentation shows it.
type OptionRow struct{ Name, Takes, Default, Meaning string }

// OptionTable returns every option of a rule, in the order of the documentation.
func OptionTable() []OptionRow {
	var rows []OptionRow
	for _, o := range optionTable() {
		rows = append(rows, OptionRow{o.name, o.takes, o.def, o.meaning})
	}
	return rows
}

// OptionValue is one option as it is in force.
type OptionValue struct {
	Name  string `json:"name"`
	Value string `json:"value"` // names alone of an environment
	From  string `json:"from"`  // manifest, default, or the setting that decides
}

// Values returns every option with what is in force and where it came from.
func (o Options) Values() []OptionValue {
	var all []OptionValue
	for _, row := range optionTable() {
		from := "default"
		switch {
		case o.given[row.name]:
			from = "manifest"
		case strings.HasPrefix(row.def, "SANDBOX_"):
			from = row.def
		}
		all = append(all, OptionValue{row.name, row.show(o), from})
	}
	return all
}

func orWords(value, words string) string {
	if value == "" {
		return words
	}
	return value
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

func showBytes(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 30, "g"}, {1 << 20, "m"}, {1 << 10, "k"}} {
		if n%unit.size == 0 {
			return fmt.Sprintf("%d%s", n/unit.size, unit.name)
		}
	}
	return strconv.FormatInt(n, 10)
}

// showEnv names the variables; their values are nobody's business.
func showEnv(o Options) string {
	names := make([]string, 0, len(o.Env))
	for name := range o.Env {
		names = append(names, name)
	}
	slices.Sort(names)
	return orWords(strings.Join(names, ", "), "none")
}

func showLabels(o Options) string {
	pairs := make([]string, 0, len(o.Labels))
	for name, value := range o.Labels {
		pairs = append(pairs, name+"="+value)
	}
	slices.Sort(pairs)
	return orWords(strings.Join(pairs, ", "), "none")
}
