// Package examples holds three organizations that run without a key and without
// a network, and carries them inside the binary.
//
// incident-desk finds out from an access log what went wrong; `rolecall demo`
// runs it. release-notes makes release notes of a project's commits, with a
// hierarchy of three levels. any-model thinks with a script too, or, one line
// changed, with any language model. Each is a folder with an organization.yaml,
// a script that thinks for its agents, the input it works on, and a README.
//
// The package only carries files; it starts nothing.
package examples

import "embed"

// Files has the folders incident-desk, release-notes and any-model.
//
//go:embed incident-desk/organization.yaml incident-desk/desk.js incident-desk/access.log incident-desk/README.md
//go:embed release-notes/organization.yaml release-notes/notes.js release-notes/commits.txt release-notes/README.md
//go:embed any-model/organization.yaml any-model/agents.js any-model/orders.txt any-model/README.md
var Files embed.FS
