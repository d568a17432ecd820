package docker

import (
	"context"
	"sync"
	"time"

	"caisson/sandbox"
)

// proofs share probes among creates: none of them is handed a result of a probe that began
// before it asked, and no result is kept (D1).
type proofs struct {
	mu    sync.Mutex
	tiers map[sandbox.Network]*proofQueue
}

// proofQueue holds the probe that runs, which nobody can join any more, and the one that
// begins after it.
type proofQueue struct {
	running, next *proof
}

// proof is one probe; err is there once done is closed.
type proof struct {
	done chan struct{}
	err  error
}

// prove begins to prove what a create on a tier needs, and returns what waits for it: the
// egress tier always, the internal one for a create there (D21). With the probe off it
// asks nobody (PRB-1).
func (p *Provider) prove(tier sandbox.Network) (wait func(ctx context.Context) error) {
	if !p.cfg.Probe.Enabled {
		return func(context.Context) error { return nil }
	}
	asked := []*proof{p.ask(sandbox.NetworkEgress)}
	if tier == sandbox.NetworkInternal {
		asked = append(asked, p.ask(tier))
	}
	return func(ctx context.Context) error {
		for _, one := range asked {
			select {
			case <-one.done:
				if one.err != nil {
					return one.err
				}
			case <-ctx.Done():
				return p.failed("prove the egress firewall", context.Cause(ctx))
			}
		}
		return nil
	}
}

// Prove proves the firewall as a create on that tier does. With the probe off it is nil.
func (p *Provider) Prove(ctx context.Context, tier sandbox.Network) error {
	if err := p.connect(ctx); err != nil {
		return err
	}
	return p.prove(tier)(ctx)
}

// ask returns a probe that begins after this call.
func (p *Provider) ask(tier sandbox.Network) *proof {
	p.proofs.mu.Lock()
	defer p.proofs.mu.Unlock()
	if p.proofs.tiers == nil {
		p.proofs.tiers = map[sandbox.Network]*proofQueue{}
	}
	q := p.proofs.tiers[tier]
	if q == nil {
		q = &proofQueue{}
		p.proofs.tiers[tier] = q
	}
	if q.running == nil {
		q.running = &proof{done: make(chan struct{})}
		first := q.running
		p.work.Go(func() { p.runProofs(tier, q, first) })
		return first
	}
	if q.next == nil {
		q.next = &proof{done: make(chan struct{})}
	}
	return q.next
}

// runProofs runs a queue's probes, one after another, until nobody waits.
func (p *Provider) runProofs(tier sandbox.Network, q *proofQueue, current *proof) {
	for current != nil {
		began := time.Now()
		current.err = p.probe(p.life, tier)
		p.cfg.Observer.Probed(tier, time.Since(began), current.err)
		close(current.done)
		p.proofs.mu.Lock()
		q.running, q.next = q.next, nil
		current = q.running
		p.proofs.mu.Unlock()
	}
}
