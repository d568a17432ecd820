package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"caisson/sandbox"
	"caisson/sandbox/docker"
	"caisson/settings"
)

// diagnose asks the provider what it finds on the engine, and adds what the
// settings say about it.
func (p Process) diagnose(ctx context.Context, engine *docker.Provider, s settings.Settings) []finding {
	clear := showProgress(p.Stderr, "looking at the engine and at "+s.Docker.DefaultImage+" …")
	checks := engine.Diagnose(ctx, s.Docker.DefaultImage)
	clear()
	var findings []finding
	for _, c := range checks {
		findings = append(findings, finding{level: levelOf(c), name: c.Name, detail: c.Detail, mend: c.Mend})
	}
	return append(findings, probeFinding(s.Docker, func() error { return engine.Prove(ctx, s.Docker.DefaultNetwork) }))
}

func levelOf(c docker.Check) level {
	switch {
	case !c.OK:
		return levelFail
	case c.Warn:
		return levelWarn
	default:
		return levelOK
	}
}

// probeFinding tells whether anything proves the firewall that the network
// tiers rest on.
func probeFinding(d settings.Docker, prove func() error) finding {
	f := finding{level: levelOK, name: "firewall probe"}
	switch {
	case d.ReadinessProbeEnabled:
		f.detail = "before each session"
		if err := prove(); err != nil {
			f.level, f.detail = levelFail, sentence(err)
			f.mend = "load the rules of deploy/ on the engine's host; docs/firewall.md tells what the probe proves and what each refusal means"
		}
	case d.MaxNetwork == sandbox.NetworkNone:
		f.detail = "not needed: SANDBOX_DOCKER_MAX_NETWORK allows no session a network"
	default:
		f.level = levelWarn
		f.detail = "off: nothing proves that sessions with a network are kept from the engine and its neighbours"
		f.mend = "load the rules of deploy/ on the engine's host and set SANDBOX_DOCKER_READINESS_PROBE_ENABLED=true (docs/firewall.md), or set SANDBOX_DOCKER_MAX_NETWORK=none"
	}
	return f
}

// sentence is what an error says to whoever asked, without its causes.
func sentence(err error) string {
	var e *sandbox.Error
	if errors.As(err, &e) && e.Text != "" {
		return e.Text
	}
	return err.Error()
}

// runtimeWait bounds the look at the engine's runtimes at start.
const runtimeWait = 5 * time.Second

// checkRuntimes refuses runtimes that the settings name and the engine does not
// have: every session would fail. An engine that does not answer is no reason
// not to start; its creates will say what is wrong.
func (e engineParts) checkRuntimes(ctx context.Context, d settings.Docker) error {
	named := map[string]string{"RUNTIME": d.Runtime, "VM_RUNTIME": d.VMRuntime}
	if d.Runtime == "" && d.VMRuntime == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, runtimeWait)
	defer cancel()
	var faults settings.Faults
	for _, c := range e.provider.Diagnose(ctx, "") {
		for setting, name := range named {
			if name != "" && c.Name == "runtime "+name && !c.OK {
				faults = faults.With(settings.DockerPrefix+setting, fmt.Sprintf("names the runtime %s: %s; %s", name, c.Detail, c.Mend))
			}
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}
