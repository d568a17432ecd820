package docker

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"caisson/sandbox"
)

//go:embed probe.sh
var probeScript string

const (
	// dialSeconds is how long one dial of the probe may take: a firewall that drops adds
	// no more to a create.
	dialSeconds = 2
	probePort   = 40053
	probePrefix = containerPrefix + "probe-"
	// probeTries is how often an undecided probe is repeated within its time.
	probeTries = 3
	// maxReport bounds what is read of a report: what runs in the probe image is not ours.
	maxReport = 64 << 10
)

// probe proves that a network's sandboxes do not reach the engine and, where the tier has
// one, do reach their resolver (PRB-2 to PRB-12, D21). The whole of it is bounded by the
// probe's own timeout. What cannot be proved is KindFirewall.
func (p *Provider) probe(ctx context.Context, tier sandbox.Network) error {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Probe.Timeout)
	defer cancel()
	var undecided error
	for range probeTries {
		err := p.probeOnce(ctx, tier)
		var again *undecidedError
		if ctx.Err() != nil {
			return notInForce("the probe did not complete within %s", p.cfg.Probe.Timeout).Because(errors.Join(err, undecided))
		}
		if !errors.As(err, &again) {
			return err
		}
		undecided = err
	}
	return notInForce("the probe could not tell: %v", undecided).Because(undecided)
}

// undecidedError is a probe that says neither yes nor no: a slow engine, most likely.
type undecidedError struct{ text string }

func (e *undecidedError) Error() string { return e.text }

func notInForce(format string, args ...any) *sandbox.Error {
	return sandbox.Errorf("prove the egress firewall", sandbox.KindFirewall,
		"the egress firewall is not proved to be in force, so no session is made: "+format+" (docs/firewall.md)", args...)
}

func (p *Provider) probeOnce(ctx context.Context, tier sandbox.Network) error {
	img, err := p.image(ctx, p.cfg.Probe.Image, p.cfg.PullPolicy, nil)
	if err != nil {
		return sandbox.Errorf("prove the egress firewall", sandbox.KindOf(err), "the firewall probe's image (SANDBOX_DOCKER_READINESS_PROBE_IMAGE): %s", textOf(err)).Because(err)
	}
	name, err := p.network(ctx, tier)
	if err != nil {
		return err
	}
	targets, err := p.probeTargets(ctx)
	if err != nil {
		return err
	}
	a, b := rand.IntN(1<<29), rand.IntN(1<<29)
	command := []string{"sh", "-c", probeScript, "probe", strconv.Itoa(a), strconv.Itoa(b), strconv.Itoa(dialSeconds), strconv.Itoa(probePort)}
	report, err := p.runProbe(ctx, img, name, append(command, targets...))
	if err != nil {
		return err
	}
	return judgeProbe(report, a+b, targets, tier == sandbox.NetworkEgress)
}

// runProbe runs the probe's container and returns what it printed. The container is
// removed whatever happens, and nobody waits for that.
func (p *Provider) runProbe(ctx context.Context, img engineImage, network string, command []string) (string, error) {
	config, hostConfig, netConfig := createBody(blueprint{
		imageID: img.id, user: account{uid: 1, gid: 1}, network: network, seccomp: p.seccomp, bare: true, command: command,
		labels: map[string]string{
			labelSandbox: "1", labelRole: roleProbe, labelID: "", labelInstance: p.cfg.Instance,
			labelDurability: string(sandbox.Ephemeral), labelVersion: p.cfg.Version,
			labelCreated: time.Now().UTC().Format(time.RFC3339Nano),
		},
		memory: ptr(int64(64 << 20)), pids: ptr(int64(64)),
	})
	name := probePrefix + sandbox.NewExecID()[len("exec_"):]
	longer, cancel := outlive(ctx, createLimit, answerWait)
	defer cancel()
	made, err := p.api.ContainerCreate(longer, config, hostConfig, netConfig, nil, name)
	if err != nil {
		if lostAnswer(p.createFailed(err)) {
			p.dropProbe(name)
		}
		return "", p.createFailed(err)
	}
	defer p.dropProbe(made.ID)
	st, err := p.takeOver(ctx, p.dialAhead(ctx), "/containers/"+made.ID+"/attach?stream=1&stdout=1", struct{}{})
	if err != nil {
		return "", p.failed("attach to the probe", err)
	}
	defer st.close()
	if err := p.api.ContainerStart(ctx, made.ID, container.StartOptions{}); err != nil {
		return "", p.startFailed(err)
	}
	stop := context.AfterFunc(ctx, st.close)
	defer stop()
	var out bytes.Buffer
	_, err = stdcopy.StdCopy(&out, io.Discard, io.LimitReader(st.reader, maxReport))
	if err != nil && ctx.Err() != nil {
		return "", p.failed("read the probe's report", context.Cause(ctx))
	}
	return out.String(), nil // one that was cut off has no end, and so proves nothing
}

// dropProbe removes the probe's container, off every critical path (D1).
func (p *Provider) dropProbe(ref string) {
	p.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupLimit) // Close waits for it
		defer cancel()
		// A busy engine may refuse at first: what is not removed here stays for minutes.
		for {
			err := p.remove(ctx, ref)
			if err == nil {
				return
			}
			if pause(ctx, time.Second) != nil {
				p.log.Warn("a probe's container could not be removed; a sweep will", "error", err)
				return
			}
		}
	})
}

// judgeProbe says whether a report proves that none of the targets is reached. Only lines
// with the sum count. A dial that was not answered counts as not reached only where the
// probe's dial of itself, at the same time, was quick: a slow engine is never taken for a
// closed one.
func judgeProbe(report string, sum int, targets []string, resolver bool) error {
	r, err := readProbe(report, sum)
	if err != nil {
		return err
	}
	for _, target := range targets {
		d, ok := r.dials[target]
		switch {
		case !ok:
			return &undecidedError{"a dial was not reported"}
		case d.code != dialFailed:
			return notInForce("a sandbox on the network reaches the engine's control port at %s", strings.Replace(target, ",", ":", 1))
		}
	}
	switch {
	case r.self.code != 0:
		return &undecidedError{"the probe cannot even connect to itself, so what it did not reach means nothing"}
	case r.self.took > time.Second:
		return &undecidedError{fmt.Sprintf("connecting to itself took the probe %v: the engine is too slow to tell", r.self.took)}
	case resolver && r.resolver == "":
		return notInForce("the probe's container has no nameserver, so its resolver cannot be shown to be reachable")
	case resolver && !r.answered:
		return notInForce("it blocks too much, or the resolver is down: a sandbox gets no answer from its own resolver %s (%s)", r.resolver, cmp.Or(r.words, "nothing within 4 s"))
	}
	return nil
}
