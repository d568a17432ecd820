package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"caisson/sandbox"
	"caisson/sandbox/docker"
	"caisson/settings"
)

func (p Process) sessionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List and end the sessions on the engine, of all servers",
		Long:  "List and end the sessions on the engine, of all servers. What there is is read from the engine's labels: no server has to run.",
		Args:  usageArgs(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.sessionsList(), p.sessionsDestroy(), p.sessionsPrune())
	return cmd
}

// operate runs f on the engine that the settings name.
func (p Process) operate(ctx context.Context, f func(ctx context.Context, e *docker.Provider, s settings.Settings) error) error {
	s, err := settings.Load(p.Environ)
	var faults settings.Faults
	if err != nil && !errors.As(err, &faults) {
		return err
	}
	parts, err := prepare(s, faults, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, stopSignals()...)
	defer stop()
	return errors.Join(f(ctx, parts.provider, s), parts.provider.Close())
}

func (p Process) sessionsList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sessions on the engine, of all servers, oldest first",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.operate(cmd.Context(), func(ctx context.Context, e *docker.Provider, s settings.Settings) error {
				i, err := sandbox.TakeInventory(ctx, e)
				if err != nil {
					return err
				}
				if asJSON {
					return p.printJSON(sessionObjects(i, s))
				}
				_, err = fmt.Fprint(p.Stdout, columns(sessionRows(i, s)))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON list")
	return cmd
}

// sessionObject is a session in sessions list --json.
type sessionObject struct {
	ID           string    `json:"session_id"`
	Instance     string    `json:"instance"`
	Server       string    `json:"server"`
	Owner        string    `json:"owner"`
	Kind         string    `json:"kind"` // session, or tools: it runs the manifest's tools
	State        string    `json:"state"`
	Image        string    `json:"image"`
	Network      string    `json:"network"`
	Durability   string    `json:"durability"`
	WorkspaceKey string    `json:"workspace_key,omitempty"`
	CreatedAt    time.Time `json:"created_at"`
	TTLSeconds   int64     `json:"ttl_seconds"`
}

func sessionObjects(i sandbox.Inventory, s settings.Settings) []sessionObject {
	all := make([]sessionObject, 0, len(i.Sessions))
	for _, info := range oldestFirst(i.Sessions) {
		all = append(all, sessionObject{
			ID: info.ID, Instance: info.Instance, Server: serverState(i, info.Instance, s.Docker.InstanceGrace), Owner: info.OwnerHash, Kind: kindOf(info),
			State: string(info.State), Image: info.Image, Network: string(info.Network), Durability: string(info.Durability),
			WorkspaceKey: info.WorkspaceKey, CreatedAt: info.CreatedAt.UTC(), TTLSeconds: int64(info.TTL.Seconds()),
		})
	}
	return all
}

func sessionRows(i sandbox.Inventory, s settings.Settings) [][]string {
	rows := [][]string{{"SESSION", "INSTANCE", "SERVER", "OWNER", "KIND", "STATE", "AGE", "TTL", "NETWORK", "WORKSPACE", "IMAGE"}}
	for _, info := range oldestFirst(i.Sessions) {
		rows = append(rows, []string{
			info.ID, info.Instance, serverState(i, info.Instance, s.Docker.InstanceGrace), info.OwnerHash, kindOf(info), string(info.State),
			i.Now.Sub(info.CreatedAt).Round(time.Second).String(), info.TTL.String(), string(info.Network),
			cmp.Or(info.WorkspaceKey, "-"), info.Image,
		})
	}
	return rows
}

// kindOf tells a client's session from the container of a manifest's tools.
func kindOf(info sandbox.Info) string {
	if info.Tools {
		return "tools"
	}
	return "session"
}

func oldestFirst(sessions []sandbox.Info) []sandbox.Info {
	return slices.SortedFunc(slices.Values(sessions), func(a, b sandbox.Info) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
}

// serverState says what an instance's lease tells of its server: alive, late (its lease
// has run out, and the grace is not over), dead, or unknown without a lease.
func serverState(i sandbox.Inventory, instance string, grace time.Duration) string {
	lease, ok := i.Leases[instance]
	switch {
	case !ok:
		return "unknown"
	case i.Now.Before(lease.Expires):
		return "alive"
	case i.Now.Before(lease.Expires.Add(grace)):
		return "late"
	default:
		return "dead"
	}
}
