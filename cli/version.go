package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"caisson/mcp"
)

// build is what the binary says of itself.
type build struct {
	version  string
	revision string // empty where it was built outside a repository
	modified bool
	time     string
}

// readBuild takes the version from what the Go tool stamps into every binary.
func readBuild() build {
	b := build{version: "devel"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.revision = s.Value
		case "vcs.modified":
			b.modified = s.Value == "true"
		case "vcs.time":
			b.time = s.Value
		}
	}
	return b
}

func (p Process) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, and the protocol versions it speaks",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(p.Stdout, readBuild().text())
			return err
		},
	}
}

func (b build) text() string {
	revision := b.revision
	switch {
	case revision == "":
		revision = "unknown"
	case b.modified:
		revision += ", modified"
	}
	if b.time != "" {
		revision += ", " + b.time
	}
	return fmt.Sprintf("caisson   %s\nrevision  %s\ngo        %s %s/%s\nMCP       %s\n",
		b.version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.Join(mcp.ProtocolVersions(), ", "))
}
