package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	statement "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	predicateType = "https://slsa.dev/provenance/v1"
	buildType     = repositoryURL + "/blob/main/docs/install.md#build-a-release-yourself"
	builderID     = repositoryURL + "/blob/main/docs/install.md#unsigned-provenance"
)

// unsignedNote says what the statement is worth.
const unsignedNote = "This statement is not signed. It says how the files were built, and proves nothing: build the commit again to check it."

// writeProvenance writes an in-toto statement with the SLSA provenance of all files so far.
func (r *release) writeProvenance() error {
	predicate, err := r.provenance()
	if err != nil {
		return err
	}
	s := &statement.Statement{Type: statement.StatementTypeUri, PredicateType: predicateType, Predicate: predicate}
	for _, f := range r.files {
		s.Subject = append(s.Subject, &statement.ResourceDescriptor{Name: f.name, Digest: map[string]string{"sha256": f.sha256}})
	}
	if err := s.Validate(); err != nil {
		return fmt.Errorf("write the provenance: %w", err)
	}
	text, err := marshal(s)
	if err != nil {
		return err
	}
	return r.writeFile(r.prefix()+".provenance.json", text)
}

// provenance returns the predicate of the statement.
func (r *release) provenance() (*structpb.Struct, error) {
	external, err := structpb.NewStruct(map[string]any{"source": "git+" + repositoryURL, "commit": r.commit, "version": r.version})
	if err != nil {
		return nil, err
	}
	internal, err := structpb.NewStruct(map[string]any{
		"note": unsignedNote, "flags": strings.Join(buildFlags, " "), "environment": strings.Join(buildEnv, " "), "platforms": strings.Join(r.platforms(), " "),
	})
	if err != nil {
		return nil, err
	}
	p := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: buildType, ExternalParameters: external, InternalParameters: internal,
			ResolvedDependencies: r.sources(),
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: builderID}},
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("write the provenance: %w", err)
	}
	text, err := marshal(p)
	if err != nil {
		return nil, err
	}
	predicate := new(structpb.Struct)
	return predicate, protojson.Unmarshal(text, predicate)
}

// platforms lists the platforms of the programs.
func (r *release) platforms() []string {
	var list []string
	for _, p := range r.programs {
		list = append(list, p.os+"/"+p.arch)
	}
	return list
}

// sources lists the commit, the version of Go and the modules, each once.
func (r *release) sources() []*statement.ResourceDescriptor {
	list := []*statement.ResourceDescriptor{{
		Uri: "git+" + repositoryURL + "@" + r.version, Digest: map[string]string{"gitCommit": r.commit},
	}}
	var names []string
	for _, p := range r.programs {
		for _, m := range linkedModules(p.info) {
			names = append(names, purl(m).Locator)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		list = append(list, &statement.ResourceDescriptor{Uri: name})
	}
	return list
}

// marshal returns a message as JSON. protojson alone varies its spaces.
func marshal(m proto.Message) ([]byte, error) {
	text, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Indent(&out, text, "", " ")
	return append(out.Bytes(), '\n'), err
}
