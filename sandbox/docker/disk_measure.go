package docker

import (
	"context"
	"strings"
	"time"

	"github.com/docker/docker/api/types"
)

const (
	// measureLimit is how long a create waits for the size of its workspace.
	measureLimit = 45 * time.Second
	// measureAgain is between two tries on an engine that measures for somebody else.
	measureAgain = 250 * time.Millisecond
)

// measure asks the engine for the sizes of what it has. Engines before 23.0 measure for
// one at a time and refuse everybody else: so does this server, which waits, and tries
// again where another one is measured for. ctx bounds it.
func (p *Provider) measure(ctx context.Context, kinds ...types.DiskUsageObject) (types.DiskUsage, error) {
	select {
	case p.disks.turn <- struct{}{}:
		defer func() { <-p.disks.turn }()
	case <-ctx.Done():
		return types.DiskUsage{}, context.Cause(ctx)
	}
	for {
		du, err := p.api.DiskUsage(ctx, types.DiskUsageOptions{Types: kinds})
		if err == nil || !strings.Contains(err.Error(), "disk usage operation is already running") {
			return du, err
		}
		if err := pause(ctx, measureAgain); err != nil {
			return types.DiskUsage{}, err
		}
	}
}
