package docker

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/versions"

	"caisson/sandbox"
)

// Our networks (D22). The bridges have names of their own, so that a firewall's
// rules can name them.
const (
	internalNetwork = "tai-sbx-internal"
	internalBridge  = "tai-sbx-int"
	egressNetwork   = "tai-sbx-egress"
	egressBridge    = "tai-sbx-egress"

	optionBridge    = "com.docker.network.bridge.name"
	optionICC       = "com.docker.network.bridge.enable_icc"
	optionGateway   = "com.docker.network.bridge.gateway_mode_ipv4"
	isolatedGateway = "isolated"
	// isolatedAPI is the first engine API whose bridges know that gateway mode.
	isolatedAPI = "1.48"

	// networkWait is how long a network that somebody else is making may take.
	networkWait = 10 * time.Second
	networkLook = 100 * time.Millisecond
)

var networkNameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)

// networkCache remembers which networks were seen to be there and right, so that
// a create need not ask again. A create that finds one gone forgets it.
type networkCache struct {
	mu   sync.Mutex
	good map[string]bool
}

func (c *networkCache) has(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.good[name]
}

func (c *networkCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.good)
}

func (c *networkCache) set(name string, good bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.good == nil {
		c.good = map[string]bool{}
	}
	c.good[name] = good
}

// networkName is the engine's name of a tier's network (NET-1).
func (p *Provider) networkName(tier sandbox.Network) (string, error) {
	switch tier {
	case sandbox.NetworkNone:
		return networkNone, nil
	case sandbox.NetworkInternal:
		return internalNetwork, nil
	case sandbox.NetworkEgress:
		return p.cfg.EgressNetwork, nil
	default:
		return "", sandbox.Rejected("network", "the networks are none, internal and egress")
	}
}

// network returns the engine's name of a tier's network, made if it is ours and
// not there. One that is there and is not what the tier promises is refused
// (NET-6).
func (p *Provider) network(ctx context.Context, tier sandbox.Network) (string, error) {
	name, err := p.networkName(tier)
	if err != nil || name == networkNone || p.networks.has(name) {
		return name, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	found, err := p.findNetwork(ctx, name)
	if err == nil && found == nil {
		found, err = p.makeNetwork(ctx, tier, name)
	}
	if err != nil {
		return "", err
	}
	if err := checkNetwork(tier, *found); err != nil {
		return "", err
	}
	p.networks.set(name, true)
	return name, nil
}

// findNetwork returns the network of exactly that name, or nil.
func (p *Provider) findNetwork(ctx context.Context, name string) (*network.Inspect, error) {
	found, err := p.api.NetworkInspect(ctx, name, network.InspectOptions{})
	switch {
	case errdefs.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, p.failed("find the network", err)
	case found.Name != name: // the engine also takes the beginning of an id
		return nil, nil
	}
	return &found, nil
}

// makeNetwork makes one of our networks. Whoever loses the race for it takes the
// winner's (NET-3).
func (p *Provider) makeNetwork(ctx context.Context, tier sandbox.Network, name string) (*network.Inspect, error) {
	if name != internalNetwork && name != egressNetwork {
		return nil, sandbox.Rejected("network", "the engine has no network %q, which this server's egress tier stands for", name)
	}
	_, makeErr := p.api.NetworkCreate(ctx, name, p.networkOptions(tier))
	found, err := p.findNetwork(ctx, name)
	if errdefs.IsPermissionDenied(makeErr) || errdefs.IsConflict(makeErr) {
		found, err = p.awaitNetwork(ctx, name)
	}
	switch {
	case err != nil:
		return nil, err
	case found != nil:
		return found, nil
	case makeErr != nil:
		return nil, p.networkFailed(makeErr)
	}
	return nil, sandbox.Errorf("make the network", sandbox.KindBusy, "the network was removed as it was made; try again")
}

// awaitNetwork finds a network that the engine will not make since it is making it already:
// its bridge is taken before it can be looked up. nil when it does not come.
func (p *Provider) awaitNetwork(ctx context.Context, name string) (found *network.Inspect, err error) {
	for until := time.Now().Add(networkWait); ; {
		found, err = p.findNetwork(ctx, name)
		if err != nil || found != nil || time.Now().After(until) {
			return found, err
		}
		select {
		case <-ctx.Done():
			return nil, p.failed("find the network", context.Cause(ctx))
		case <-time.After(networkLook):
		}
	}
}

func (p *Provider) networkOptions(tier sandbox.Network) network.CreateOptions {
	o := network.CreateOptions{
		Driver: "bridge",
		Options: map[string]string{
			optionBridge: egressBridge,
			optionICC:    "false", // sessions do not reach one another
		},
		Labels: map[string]string{
			labelSandbox: "1", labelNetwork: string(tier), labelVersion: p.cfg.Version,
		},
	}
	if tier == sandbox.NetworkInternal {
		o.Internal = true
		o.Options[optionBridge] = internalBridge
		if !versions.LessThan(p.apiVersion(), isolatedAPI) {
			o.Options[optionGateway] = isolatedGateway
		}
	}
	return o
}

// checkNetwork says what is wrong with a network for its tier. Of one that the
// operator chose for egress it asks only that it is a network of containers.
func checkNetwork(tier sandbox.Network, n network.Inspect) error {
	wrong := ""
	ours := n.Name == internalNetwork || n.Name == egressNetwork
	switch {
	case n.Driver == "host" || n.Driver == "null":
		wrong = "is the engine's own " + n.Driver + " network"
	case tier == sandbox.NetworkInternal && !n.Internal:
		wrong = "has a way out: it was not made with the internal flag"
	case tier == sandbox.NetworkEgress && n.Internal:
		wrong = "has no way out: it was made with the internal flag"
	case ours && n.Driver != "bridge":
		wrong = "is no bridge"
	case ours && n.Options[optionICC] != "false":
		wrong = "lets sessions reach one another (enable_icc is not false)"
	}
	if wrong == "" {
		return nil
	}
	return sandbox.Rejected("network", "the engine's network %q %s; remove it, and the next session makes it anew", n.Name, wrong)
}

func (p *Provider) networkFailed(err error) error {
	message := err.Error()
	if strings.Contains(message, "available") && strings.Contains(message, "address pool") || strings.Contains(message, "fully subnetted") {
		return sandbox.Errorf("make the network", sandbox.KindCapacity, "the engine has no addresses left for a network; remove networks that are not used").Because(err)
	}
	return p.failed("make the network", err)
}
