package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"caisson/sandbox"
	"caisson/sandbox/docker"
	"caisson/settings"
)

func (p Process) sessionsDestroy() *cobra.Command {
	var instance string
	cmd := &cobra.Command{
		Use:   "destroy (SESSION... | --instance NAME)",
		Short: "End sessions at once, whoever has them; persistent workspaces stay",
		Long: "End sessions at once, whoever has them; persistent workspaces stay. The server that has one tells its client that the session is lost.\n" +
			"Prints the handles of those that it ended. Exit status 1 when one was not there or could not be ended.",
		RunE: func(cmd *cobra.Command, ids []string) error {
			if (instance == "") == (len(ids) == 0) {
				return usageError{errors.New("name sessions to end, or an instance with --instance; caisson sessions list shows them")}
			}
			return p.operate(cmd.Context(), func(ctx context.Context, e *docker.Provider, _ settings.Settings) error {
				if instance != "" {
					return p.endInstance(ctx, e, instance)
				}
				return p.endSessions(ctx, e, ids)
			})
		},
	}
	cmd.Flags().StringVar(&instance, "instance", "", "end all sessions of this instance, and take its lease away")
	return cmd
}

// endInstance ends all sessions of an instance, and takes its lease away: a server that
// lives makes a new one.
func (p Process) endInstance(ctx context.Context, e sandbox.Provider, instance string) error {
	i, err := sandbox.TakeInventory(ctx, e)
	if err != nil {
		return err
	}
	var ids []string
	for _, s := range i.Sessions {
		if s.Instance == instance {
			ids = append(ids, s.ID)
		}
	}
	err = p.endSessions(ctx, e, ids)
	if lease, ok := i.Leases[instance]; ok {
		err = errors.Join(err, e.DropLease(ctx, lease))
	}
	return err
}

// endSessions goes on past one that cannot be ended.
func (p Process) endSessions(ctx context.Context, e sandbox.Provider, ids []string) error {
	var errs []error
	for _, id := range ids {
		existed, err := e.Destroy(ctx, id)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", id, err))
		case !existed:
			errs = append(errs, fmt.Errorf("%s: there is no such session", id))
		default:
			if _, err := fmt.Fprintln(p.Stdout, id); err != nil {
				return err
			}
		}
	}
	return errors.Join(errs...)
}

func (p Process) sessionsPrune() *cobra.Command {
	var dryRun, now bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove what servers that are gone have left",
		Long: "Remove what servers that are gone have left: sessions that have outlived their server by their time to live, leases, helper containers and unnamed volumes. " +
			"A server is gone when its lease ran out more than SANDBOX_DOCKER_INSTANCE_GRACE_SECONDS ago, or when it has none and its newest session is older than that. Servers that run do the same by themselves. Persistent workspaces stay.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.operate(cmd.Context(), func(ctx context.Context, e *docker.Provider, s settings.Settings) error {
				return p.prune(ctx, e, s, dryRun, now)
			})
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be ended, and end nothing")
	cmd.Flags().BoolVar(&now, "now", false, "end the sessions of servers that are gone though their time to live is not over")
	return cmd
}

func (p Process) prune(ctx context.Context, e sandbox.Provider, s settings.Settings, dryRun, now bool) error {
	i, err := sandbox.TakeInventory(ctx, e)
	if err != nil {
		return err
	}
	grace := s.Docker.InstanceGrace
	dead := i.Dead(grace)
	newest := map[string]time.Time{}
	for _, info := range i.Sessions {
		if _, ok := i.Leases[info.Instance]; !ok && info.CreatedAt.After(newest[info.Instance]) {
			newest[info.Instance] = info.CreatedAt
		}
	}
	for instance, created := range newest {
		if i.Now.After(created.Add(grace)) {
			dead[instance] = created
		}
	}
	var ids []string
	left := map[string]bool{}
	for _, info := range oldestFirst(i.Sessions) {
		if _, gone := dead[info.Instance]; gone && (now || i.Outlived(info, dead, s.Docker.DefaultTTL)) {
			ids = append(ids, info.ID)
		} else {
			left[info.Instance] = true
		}
	}
	if dryRun {
		for _, id := range ids {
			if _, err := fmt.Fprintln(p.Stdout, id); err != nil {
				return err
			}
		}
		return nil
	}
	errs := []error{p.endSessions(ctx, e, ids)}
	for instance, lease := range i.Leases {
		if _, gone := dead[instance]; gone && !left[instance] {
			errs = append(errs, e.DropLease(ctx, lease))
		}
	}
	removed, err := e.Prune(ctx, sandbox.HalfMade, func(instance string) bool { return i.Unclaimed(instance, dead) })
	for _, what := range removed {
		_, _ = fmt.Fprintln(p.Stdout, what)
	}
	return errors.Join(append(errs, err)...)
}

func (p Process) printJSON(v any) error {
	out := json.NewEncoder(p.Stdout)
	out.SetIndent("", "  ")
	return out.Encode(v)
}
