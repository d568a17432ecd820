package docker

import (
	"context"
	"net"
	"net/netip"
	"slices"

	"github.com/docker/docker/api/types/network"
)

// maxTargets bounds the addresses of one probe.
const maxTargets = 24

// probeTargets are the addresses at which the engine's control port may answer a sandbox:
// all that the configured host resolves to, seen from here since a container has another
// view of names (PRB-6), and every gateway of the engine's bridges, since the port listens
// there too. None of them is configured (PRB-5).
func (p *Provider) probeTargets(ctx context.Context) ([]string, error) {
	if p.host.network != "tcp" {
		return nil, notInForce("%s is a local socket, so there is no control address to prove anything about; switch the probe off, or reach the engine over the network", hostSetting)
	}
	name, port, err := net.SplitHostPort(p.host.addr)
	if err != nil {
		return nil, p.failed("derive the probe's targets", err)
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil || len(addresses) == 0 {
		return nil, notInForce("the name of %s cannot be resolved here", hostSetting).Because(err)
	}
	for _, a := range addresses {
		if a = a.Unmap(); a.IsLoopback() || a.IsUnspecified() {
			return nil, notInForce("%s is a loopback address: in the probe's container that is the container itself, and not reaching it proves nothing", hostSetting)
		}
	}
	gateways, err := p.gateways(ctx)
	if err != nil {
		return nil, err
	}
	var targets []string
	for _, a := range append(addresses, gateways...) {
		if t := a.Unmap().String() + "," + port; !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	if len(targets) > maxTargets {
		return nil, notInForce("the engine has %d addresses on its networks, more than one probe can try (%d); remove networks that are not used", len(targets), maxTargets)
	}
	return targets, nil
}

// gatewayOf is a bridge's own address. The engine names none for its default bridge, and
// takes the first of the subnet then.
func gatewayOf(config network.IPAMConfig) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(config.Gateway); err == nil {
		return a, true
	}
	subnet, err := netip.ParsePrefix(config.Subnet)
	return subnet.Masked().Addr().Next(), err == nil
}

// gateways are the engine's own addresses on its bridges.
func (p *Provider) gateways(ctx context.Context) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	all, err := p.api.NetworkList(ctx, network.ListOptions{})
	if err != nil {
		return nil, p.failed("derive the probe's targets", err)
	}
	var found []netip.Addr
	for _, n := range all {
		if n.Driver != "bridge" {
			continue
		}
		for _, config := range n.IPAM.Config {
			if a, ok := gatewayOf(config); ok {
				found = append(found, a)
			}
		}
	}
	return found, nil
}
