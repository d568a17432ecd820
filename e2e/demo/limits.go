package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

func (d *demo) runaway(ctx context.Context) error {
	const command = `sleep 1234 & n=0; while :; do n=$((n+1)); echo "round $n"; sleep 0.5; done`
	d.did("exec %q with timeout_seconds 2", command)
	var x execution
	began := time.Now()
	a, err := d.call(ctx, "exec", map[string]any{"session_id": d.session, "command": command, "timeout_seconds": 2}, &x)
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(a.text, "\n")
	d.got("%s\nits output so far: %q", first, x.Stdout)
	switch {
	case !a.IsError || a.code() != "timed_out" || x.Status != "timed_out":
		return errors.New("a timeout that does not say so")
	case !strings.HasPrefix(x.Stdout, "round 1\nround 2\n"):
		return errors.New("the output before the timeout is lost")
	case time.Since(began) > 8*time.Second:
		return fmt.Errorf("it took %v", time.Since(began))
	}
	left, err := d.sh(ctx, "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[s]leep 1234'; true")
	if err != nil {
		return err
	}
	d.got("of its background child there are left: %s", left)
	if strings.TrimSpace(left) != "0" {
		return errors.New("a child of the command goes on")
	}
	return nil
}

func (d *demo) background(ctx context.Context) error {
	const command = `for i in $(seq 1 1000); do echo "item $i"; sleep 0.2; done`
	d.did("exec %q with wait_seconds 0", command)
	var x execution
	if _, err := d.ok(ctx, "exec", map[string]any{"session_id": d.session, "command": command, "wait_seconds": 0}, &x); err != nil {
		return err
	}
	d.got("%s at once, %s; its exec_id leads back to it", x.Status, x.code())
	if x.Status != "running" || x.ExitCode != nil {
		return errors.New("not running")
	}
	d.did(`exec_output with wait_for "item 5"`)
	var more execution
	if _, err := d.ok(ctx, "exec_output", map[string]any{"exec_id": x.ExecID, "wait_seconds": 20, "wait_for": "item 5"}, &more); err != nil {
		return err
	}
	d.got("%s, new output: %q", more.Status, more.Stdout)
	if !strings.Contains(more.Stdout, "item 5\n") || more.Status != "running" {
		return errors.New("the output did not come")
	}
	d.did("kill")
	var killed struct {
		execution
		Killed bool
	}
	if _, err := d.ok(ctx, "kill", map[string]any{"exec_id": x.ExecID}, &killed); err != nil {
		return err
	}
	d.got("%s, %s", killed.Status, killed.code())
	if !killed.Killed || killed.Status != "killed" || killed.ExitCode == nil || *killed.ExitCode != 137 {
		return errors.New("not killed")
	}
	return nil
}

// walls shows what a command can see of its confinement. Nothing is dialled: a
// sandbox of the tier none has no interface to dial through.
func (d *demo) walls(ctx context.Context) error {
	for _, look := range []struct {
		what, command string
		holds         func(out string) bool
	}{
		{"who it runs as", "id", func(out string) bool { return strings.Contains(out, "uid=") && !strings.Contains(out, "uid=0") }},
		{"capabilities, new privileges, system-call filter", "grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status", func(out string) bool {
			return strings.Count(out, "0000000000000000") == 2 && strings.Contains(out, "NoNewPrivs:\t1") && strings.Contains(out, "Seccomp:\t2")
		}},
		{"the one mount of its own", "grep ' /workspace ' /proc/self/mounts | cut -d ' ' -f 2-3", func(out string) bool { return strings.Count(out, "\n") == 1 }},
		{"network interfaces", "ls /sys/class/net", func(out string) bool { return out == "lo\n" }},
		{"engine sockets, certificates and addresses", "ls -d /certs /run/docker.sock /var/run/docker.sock 2>/dev/null; env | grep -E 'SANDBOX|DOCKER'; echo none", func(out string) bool { return out == "none\n" }},
		{"becoming root", "cp /usr/bin/id ./id; chmod 4755 ./id; ./id -u; rm ./id", func(out string) bool { return out != "0\n" }},
	} {
		out, err := d.sh(ctx, look.command)
		if err != nil {
			return err
		}
		d.did("%s", look.what)
		d.got("%s", out)
		if !look.holds(out) {
			return fmt.Errorf("%s: %q", look.what, out)
		}
	}
	return nil
}

// labelled lists the containers on the engine that carry a label of Caisson's.
func (d *demo) labelled(ctx context.Context, name, value string) ([]container.Summary, error) {
	filter := filters.NewArgs(filters.Arg("label", "caisson."+name+"="+value))
	return d.engine.ContainerList(ctx, container.ListOptions{All: true, Filters: filter})
}

func (d *demo) destroy(ctx context.Context) error {
	mine, err := d.labelled(ctx, "id", d.session)
	if err != nil {
		return err
	}
	if len(mine) != 1 || len(mine[0].Mounts) != 1 {
		return fmt.Errorf("the engine has %d containers of the session, with mounts that are not one", len(mine))
	}
	volume, instance := mine[0].Mounts[0].Name, mine[0].Labels["caisson.instance"]
	d.did("session_destroy")
	var gone struct {
		Destroyed bool
		Workspace string
	}
	if _, err := d.ok(ctx, "session_destroy", map[string]any{"session_id": d.session}, &gone); err != nil {
		return err
	}
	d.got("destroyed: %v, workspace: %s", gone.Destroyed, gone.Workspace)
	d.did("ask the engine")
	if err := poll(ctx, "no container of this server is left but its lease", func() (bool, error) {
		left, err := d.labelled(ctx, "instance", instance)
		for _, c := range left {
			if c.Labels["caisson.role"] != "lease" {
				return false, err
			}
		}
		return true, err
	}); err != nil {
		return err
	}
	if _, err := d.engine.VolumeInspect(ctx, volume); err == nil {
		return errors.New("the workspace's volume is still there")
	}
	d.got("no container of this server is left but its lease, and no volume of this sandbox")
	if !gone.Destroyed {
		return errors.New("not destroyed")
	}
	return nil
}
