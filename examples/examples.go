// Package examples embeds three example organizations, which need no API key and no
// network.
//
// incident-desk investigates an incident in an access log; `rolecall demo` runs it.
// release-notes writes release notes from a project's commits, with a hierarchy of three
// levels. any-model runs a script, or with one line changed any language model. Each is a
// folder with an organization.yaml, an agent script, the input and a README.
//
// The package only embeds files; the other examples of the folder are not embedded.
package examples

import "embed"

// Files contains the folders incident-desk, release-notes and any-model.
//
//go:embed incident-desk/organization.yaml incident-desk/desk.js incident-desk/access.log incident-desk/README.md
//go:embed release-notes/organization.yaml release-notes/notes.js release-notes/commits.txt release-notes/README.md
//go:embed any-model/organization.yaml any-model/agents.js any-model/orders.txt any-model/README.md
var Files embed.FS
