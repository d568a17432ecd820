package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"

	"caisson/sandbox"
)

// Check is one finding of Diagnose. Warn is something that works and should be
// known; where OK is false something does not work, and Mend says what to do.
type Check struct {
	Name   string
	OK     bool
	Warn   bool
	Detail string
	Mend   string
}

// Diagnose looks at all that sessions of this image will need, and says what it
// finds, most basic first. What cannot be looked at, since something before it
// failed, is left out. It makes one session of the image and removes it; an empty
// image leaves that out.
func (p *Provider) Diagnose(ctx context.Context, image string) []Check {
	checks := []Check{p.checkWay()}
	if err := p.Ping(ctx); err != nil {
		return append(checks, failedCheck("engine", err, "see that the engine runs and that "+hostSetting+" and the certificates are right"))
	}
	checks = append(checks, p.checkCertificates(ctx)...)
	info, err := p.engineInfo(ctx)
	if err != nil {
		return append(checks, failedCheck("engine", err, "look into the engine's log"))
	}
	checks = append(checks, p.checkEngine(info))
	checks = append(checks, p.checkParts(ctx)...)
	checks = append(checks, checkCaps(info)...)
	checks = append(checks, p.checkRuntimes(info)...)
	checks = append(checks, p.checkNetworks(ctx)...)
	if image != "" {
		checks = append(checks, p.checkImage(ctx, image)...)
	}
	return checks
}

func failedCheck(name string, err error, mend string) Check {
	return Check{Name: name, Detail: textOf(err), Mend: mend}
}

func (p *Provider) checkWay() Check {
	c := Check{Name: "connection", OK: true}
	switch p.host.transport {
	case transportMutual:
		c.Detail = p.host.String() + ", mTLS"
	case transportServer:
		c.Warn, c.Detail = true, p.host.String()+", TLS without an identity of ours"
		c.Mend = "set SANDBOX_DOCKER_TLS_VERIFY=true and give the engine a CA for its clients: whoever reaches it owns its host"
	case transportPlain:
		c.Detail = p.host.String()
		if p.host.network == "tcp" {
			c.Warn, c.Detail = true, c.Detail+", plain"
			c.Mend = "set SANDBOX_DOCKER_TLS_VERIFY=true and run the engine with tlsverify: whoever reaches it owns its host"
		}
	}
	return c
}

func (p *Provider) engineInfo(ctx context.Context) (system.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	info, err := p.api.Info(ctx)
	if err != nil {
		return system.Info{}, p.failed("ask the engine", err)
	}
	return info, nil
}

func (p *Provider) checkEngine(info system.Info) Check {
	c := Check{Name: "engine", OK: info.OSType == "linux", Detail: fmt.Sprintf("%s (API %s), %s/%s, %d CPUs, %d MiB, cgroup v%s, storage %s",
		info.ServerVersion, p.apiVersion(), info.OSType, info.Architecture, info.NCPU, info.MemTotal>>20, info.CgroupVersion, info.Driver)}
	switch {
	case !c.OK:
		c.Mend = "sessions need an engine that runs Linux containers"
	case versions.LessThan(p.apiVersion(), isolatedAPI):
		c.Warn = true
		c.Mend = "an engine before 28 shields its own host less from sessions: see the firewall rules of the deployment"
	}
	return c
}

// checkParts names the versions of what the engine is made of, and what is known of them.
func (p *Provider) checkParts(ctx context.Context) []Check {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	version, err := p.api.ServerVersion(ctx)
	if err != nil {
		return []Check{failedCheck("engine's parts", p.failed("ask the engine", err), "look into the engine's log")}
	}
	parts := []string{"kernel " + version.KernelVersion}
	for _, c := range version.Components {
		if c.Name != "Engine" {
			parts = append(parts, c.Name+" "+c.Version)
		}
	}
	named := Check{Name: "engine's parts", OK: true, Detail: oneLine(strings.Join(parts, ", "), 300)}
	return append([]Check{named}, checkFlaws(version)...)
}

// checkCaps says of each cap whether the engine can enforce it (D34).
func checkCaps(info system.Info) []Check {
	cap := func(name string, ok bool, mend string) Check {
		c := Check{Name: "cap on " + name, OK: ok, Detail: "enforced", Mend: mend}
		if ok {
			c.Mend = ""
		} else {
			c.Detail = "the engine cannot enforce it, and a session with one is refused"
		}
		return c
	}
	checks := []Check{
		cap("CPU", info.CPUCfsQuota, "give the engine the cpu cgroup controller"),
		cap("memory", info.MemoryLimit, "give the engine the memory cgroup controller"),
		cap("processes", info.PidsLimit, "give the engine the pids cgroup controller"),
	}
	swap := Check{Name: "cap on swap", OK: true, Detail: "enforced"}
	if !info.SwapLimit {
		swap.Warn, swap.Detail, swap.Mend = true, "swap is not counted: it comes on top of a session's memory", "boot the engine's host with swapaccount=1, or without swap"
	}
	checks = append(checks, swap)
	filter := Check{Name: "system call filter", OK: slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.Contains(o, "seccomp") }), Detail: "in force"}
	if !filter.OK {
		filter.Detail, filter.Mend = "the engine knows no seccomp", "use an engine and a kernel with seccomp"
	}
	return append(checks, filter)
}

func (p *Provider) checkRuntimes(info system.Info) []Check {
	var checks []Check
	for setting, name := range map[string]string{"SANDBOX_DOCKER_RUNTIME": p.cfg.Runtime, "SANDBOX_DOCKER_VM_RUNTIME": p.cfg.VMRuntime} {
		if name == "" {
			continue
		}
		c := Check{Name: "runtime " + name, Detail: "there"}
		if _, c.OK = info.Runtimes[name]; !c.OK {
			c.Detail, c.Mend = "the engine does not have it", "install it on the engine, or change "+setting
		}
		checks = append(checks, c)
	}
	slices.SortFunc(checks, func(a, b Check) int { return strings.Compare(a.Name, b.Name) })
	return checks
}

func (p *Provider) checkNetworks(ctx context.Context) []Check {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	var checks []Check
	for _, tier := range []sandbox.Network{sandbox.NetworkInternal, sandbox.NetworkEgress} {
		name, err := p.networkName(tier)
		if err != nil {
			continue
		}
		found, err := p.findNetwork(ctx, name)
		checks = append(checks, p.checkTier(tier, name, found, err))
	}
	return checks
}

func (p *Provider) checkTier(tier sandbox.Network, name string, found *network.Inspect, err error) Check {
	c := Check{Name: "network " + string(tier), OK: true, Detail: name}
	switch {
	case err != nil:
		return failedCheck(c.Name, err, "look into the engine's log")
	case found == nil && name != internalNetwork && name != egressNetwork:
		c.OK, c.Detail, c.Mend = false, "the engine has no network "+name, "make it, or change SANDBOX_DOCKER_EGRESS_NETWORK"
		return c
	case found == nil:
		c.Detail += ", made with the first session that needs it"
	default:
		if err := checkNetwork(tier, *found); err != nil {
			return failedCheck(c.Name, err, "remove it; the next session makes it anew")
		}
		if found.Options[optionICC] != "false" {
			c.Warn, c.Detail = true, name+", on which sessions can reach one another"
			c.Mend = "unset SANDBOX_DOCKER_EGRESS_NETWORK, or make the network with " + optionICC + "=false"
			return c
		}
	}
	if tier == sandbox.NetworkInternal && versions.LessThan(p.apiVersion(), isolatedAPI) {
		c.Warn, c.Mend = true, "this engine has no isolated gateways: sessions reach its host's own services unless a firewall rule on "+internalBridge+" drops that"
	}
	return c
}
