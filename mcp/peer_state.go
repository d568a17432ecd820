package mcp

import (
	mcpgo "github.com/mark3labs/mcp-go/mcp"
)

// SetLogLevel keeps what logging/setLevel asks for.
func (p *peer) SetLogLevel(level mcpgo.LoggingLevel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.level = level
}

// GetLogLevel is the level below which a client wants no log messages.
func (p *peer) GetLogLevel() mcpgo.LoggingLevel {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.level
}

// SetProtocolVersion keeps the version that initialize has agreed on.
func (p *peer) SetProtocolVersion(version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version = version
}

// ProtocolVersion is the version that initialize has agreed on.
func (p *peer) ProtocolVersion() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

// SetClientInfo keeps the client's name.
func (p *peer) SetClientInfo(info mcpgo.Implementation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info = info
}

// GetClientInfo is the client's name, in its own words.
func (p *peer) GetClientInfo() mcpgo.Implementation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.info
}

// SetClientCapabilities keeps what the client can do.
func (p *peer) SetClientCapabilities(c mcpgo.ClientCapabilities) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.capabilities = c
}

// GetClientCapabilities is what the client can do, by its own word.
func (p *peer) GetClientCapabilities() mcpgo.ClientCapabilities {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.capabilities
}
