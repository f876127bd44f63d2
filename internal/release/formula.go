package main

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"
)

// repositoryURL is where the source and the releases are.
const repositoryURL = "https://github.com/rolecall/rolecall"

// formulaFile has the Homebrew formula.
const formulaFile = "rolecall.rb"

// formula is the Homebrew formula: it installs the program of a release.
var formula = template.Must(template.New("formula").Parse(`class Rolecall < Formula
  desc "Runtime for organizations of agents whose roles decide what they may call"
  homepage "{{.Home}}"
  version "{{.Version}}"
  license "Apache-2.0"
{{range .Systems}}
  on_{{.Name}} do
{{- range .Archives}}
    on_{{.CPU}} do
      url "{{.URL}}"
      sha256 "{{.SHA256}}"
    end
{{- end}}
  end
{{end}}
  def install
    bin.install "rolecall"
    generate_completions_from_executable(bin/"rolecall", "completion", shells: [:bash, :zsh, :fish])
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/rolecall version")
  end
end
`))

// formulaArchive is the archive of one processor in the formula.
type formulaArchive struct{ CPU, URL, SHA256 string }

// formulaSystem is one operating system in the formula.
type formulaSystem struct {
	Name     string
	Archives []formulaArchive
}

// writeFormula writes rolecall.rb with the checksums of the archives.
func (r *release) writeFormula() error {
	var out bytes.Buffer
	data := map[string]any{
		"Home": repositoryURL, "Version": strings.TrimPrefix(r.version, "v"),
		"Systems": []formulaSystem{{"macos", r.formulaArchives("darwin")}, {"linux", r.formulaArchives("linux")}},
	}
	if err := formula.Execute(&out, data); err != nil {
		return fmt.Errorf("write the formula: %w", err)
	}
	return r.writeFile(formulaFile, out.Bytes())
}

// formulaArchives lists the archives for an operating system.
func (r *release) formulaArchives(system string) []formulaArchive {
	var list []formulaArchive
	for i, p := range r.programs {
		if p.os == system {
			list = append(list, formulaArchive{formulaCPUs[p.arch], r.downloadURL(r.files[i].name), r.files[i].sha256})
		}
	}
	return list
}

// formulaCPUs are Homebrew's names of processors.
var formulaCPUs = map[string]string{"amd64": "intel", "arm64": "arm"}

// downloadURL returns the address of a file of the release.
func (r *release) downloadURL(name string) string {
	return repositoryURL + "/releases/download/" + r.version + "/" + name
}
