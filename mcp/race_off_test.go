//go:build !race

package mcp_test

// large is the size of a large message.
const large = 8 << 20
