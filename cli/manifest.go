package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"caisson/executor"
	"caisson/mcp"
	"caisson/settings"
)

func (p Process) manifestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "manifest",
		Short: "Check a manifest, and explain where a tool of it would run",
		Long: "Check a manifest, and explain where a tool of it would run. Both read the file that is named and the settings of this\n" +
			"environment, ask no engine and run nothing.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.manifestCheck(), p.manifestExplain())
	return cmd
}

func (p Process) manifestCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Say everything that is wrong with a manifest, with file, line and column",
		Long: "Say everything that is wrong with a manifest, with file, line and column. A rule that a server started in this\n" +
			"environment would refuse counts as wrong. Exit status 2 when something is.",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := p.readManifest(args[0])
			if err != nil {
				return err
			}
			if refused := m.Refusals(); len(refused) > 0 {
				return refused
			}
			_, err = fmt.Fprint(p.Stdout, contents(m))
			return err
		},
	}
}

// readManifest reads a file for a server with the settings of the environment.
func (p Process) readManifest(name string) (*executor.Manifest, error) {
	s, err := settings.Load(p.Environ)
	var faults settings.Faults
	if err != nil && !errors.As(err, &faults) {
		return nil, err
	}
	// What has nothing to do with manifests, such as an engine that is not named,
	// keeps nobody from checking one.
	faults = slices.DeleteFunc(faults, func(f settings.Fault) bool { return !slices.Contains(manifestSettings(), f.Name) })
	if len(faults) > 0 {
		return nil, faults
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return executor.ReadManifest(name, file, manifestServer(s, p.Environ))
}

// manifestSettings are the settings that a manifest is read with.
func manifestSettings() []string {
	names := []string{settings.MCPPrefix + "ALLOW_LOCAL", settings.MCPPrefix + "ALLOW_WEAKER_TOOLS"}
	for _, name := range []string{
		"TOOL_IMAGE", "EXECUTOR_MODE", "IDLE_TTL_SECONDS", "NETWORK_MODE", "PULL_POLICY", "RUNTIME", "VM_RUNTIME", "MAX_NETWORK", "MAX_CPU", "MAX_MEMORY_MB", "MAX_PIDS",
		"EXEC_MAX_TIMEOUT_SECONDS",
	} {
		names = append(names, settings.DockerPrefix+name)
	}
	return names
}

// manifestServer is the server that the settings describe, as a manifest sees it.
func manifestServer(s settings.Settings, environ []string) executor.Server {
	d := s.Docker
	tier, _ := executor.TierOf(d.NetworkMode) // its words are checked by settings
	return executor.Server{
		Builtin: mcp.ToolNames(),
		Environment: func(name string) (string, bool) {
			for _, entry := range environ {
				if value, ok := strings.CutPrefix(entry, name+"="); ok {
					return value, true
				}
			}
			return "", false
		},
		AllowLocal: s.MCP.AllowLocal, AllowWeaker: s.MCP.AllowWeakerTools,
		Image: d.ToolImage, Mode: executor.Mode(d.ExecutorMode), IdleTTL: d.IdleTTL, Network: tier, PullPolicy: d.PullPolicy,
		Runtime: d.Runtime, VMRuntime: d.VMRuntime,
		MaxNetwork: d.MaxNetwork, MaxNanoCPUs: int64(d.MaxCPU * 1e9), MaxMemory: d.MaxMemoryMB << 20, MaxPids: d.MaxPids, MaxTimeout: d.ExecMaxTimeout,
	}
}

// contents is what a manifest declares, a line for each kind, and every loosening.
func contents(m *executor.Manifest) string {
	var tools, toolkits, agents, executors, policies []string
	for _, t := range m.Tools {
		tools = append(tools, t.Name)
	}
	for _, t := range m.Toolkits {
		toolkits = append(toolkits, fmt.Sprintf("%s (%s_…)", t.Name, t.Prefix))
	}
	for _, a := range m.Agents {
		agents = append(agents, a.Name)
	}
	for _, e := range m.Executors {
		executors = append(executors, e.Name)
	}
	for _, p := range m.Policies() {
		policies = append(policies, fmt.Sprintf("%s (%d rules)", policyName(p), len(p.Rules())))
	}
	rows := [][]string{}
	for _, row := range []struct {
		what  string
		names []string
	}{{"tools", tools}, {"toolkits", toolkits}, {"agents", agents}, {"executors", executors}, {"policies", policies}} {
		names := "-"
		if len(row.names) > 0 {
			names = strings.Join(row.names, ", ")
		}
		rows = append(rows, []string{row.what, names})
	}
	for _, u := range m.Uses() {
		for _, loosening := range u.Instance.Loosenings {
			rows = append(rows, []string{"loosened", u.What + ": " + loosening})
		}
	}
	return m.File + " is right\n" + columns(rows)
}

func policyName(p *executor.Policy) string {
	if p.Name == "" {
		return "the default one"
	}
	return p.Name
}
