// Package principal says who calls a shared endpoint: the file of principals,
// bearer tokens, tokens of an OpenID Connect issuer and client certificates. It
// knows HTTP requests and nothing of the protocol that they carry.
package principal
