// Package configured reads configuration files for programs that embed rolecall:
//
//	files := configured.Files("org.yaml", "roles.d")
//	org, err := rolecall.Open(ctx, rolecall.Options{Data: "data", Files: files, Sandbox: sandbox})
//
// A program that imports this package links the database drivers, the MCP client and the
// servers of the command. One that does not import it links none of them. The package reads
// the files once. It serves no HTTP API: tokens of the files have no effect.
package configured

import (
	"context"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/app"
	"github.com/rolecall/rolecall/internal/embedding"
)

// Files returns configuration files for rolecall.Options. Each path is a file or a folder, of
// which the *.yaml and *.yml files are read. Variables in them are those of the process.
//
// The organization has the roles, models, modules, MCP servers, declared tools, workspaces and
// limits of the files. Roles that a former start has read and the files no longer have are
// deleted. The files may name the groups of Options.Modules. Where they name no model,
// Options.Model and Options.Models answer.
//
// Open returns an error with the code InvalidConfig that names all mistakes, if a file is
// wrong or a module does not start, or if Options.Data is empty.
func Files(paths ...string) rolecall.ConfigFiles {
	paths = slices.Clone(paths)
	return embedding.NewConfigFiles(func(ctx context.Context, o embedding.Options) (*embedding.Host, error) {
		return app.OpenEmbedded(ctx, paths, o)
	})
}
