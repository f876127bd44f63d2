package main

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"golang.org/x/mod/module"
)

// writeSBOM writes an SPDX document: each program, and the modules that are linked into it
// as the go command has recorded them.
func (r *release) writeSBOM() error {
	name := r.prefix() + ".spdx.json"
	d := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName: r.prefix(), DocumentNamespace: r.downloadURL(name),
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "rolecall-internal-release"}},
			Created:  r.time.UTC().Format("2006-01-02T15:04:05Z"),
		},
	}
	linked := map[common.ElementID]*v2_3.Package{}
	for i, p := range r.programs {
		main := r.programPackage(p, r.files[i])
		d.Packages = append(d.Packages, main)
		d.Relationships = append(d.Relationships, newRelationship("DOCUMENT", common.TypeRelationshipDescribe, main))
		for _, m := range linkedModules(p.info) {
			pkg := modulePackage(m)
			linked[pkg.PackageSPDXIdentifier] = pkg
			d.Relationships = append(d.Relationships, newRelationship(main.PackageSPDXIdentifier, common.TypeRelationshipStaticLink, pkg))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(linked)) {
		d.Packages = append(d.Packages, linked[id])
	}
	var out bytes.Buffer
	if err := json.Write(d, &out, json.Indent(" ")); err != nil {
		return fmt.Errorf("write the SBOM: %w", err)
	}
	return r.writeFile(name, out.Bytes())
}

// newRelationship returns a relationship between elements of the document.
func newRelationship(from common.ElementID, kind string, to *v2_3.Package) *v2_3.Relationship {
	return &v2_3.Relationship{RefA: common.MakeDocElementID("", string(from)), RefB: common.MakeDocElementID("", string(to.PackageSPDXIdentifier)), Relationship: kind}
}

// programPackage returns the package of a program with its archive.
func (r *release) programPackage(p program, archive file) *v2_3.Package {
	return &v2_3.Package{
		PackageName: "rolecall", PackageVersion: r.version, PackageFileName: archive.name,
		PackageSPDXIdentifier:   elementID("rolecall", p.os, p.arch),
		PackageSupplier:         &common.Supplier{SupplierType: "NOASSERTION", Supplier: "NOASSERTION"},
		PackageDownloadLocation: r.downloadURL(archive.name),
		PackageChecksums:        []common.Checksum{{Algorithm: common.SHA256, Value: archive.sha256}},
		PackageSourceInfo:       fmt.Sprintf("program for %s/%s, built from git commit %s with %s", p.os, p.arch, r.commit, p.info.GoVersion),
		PackageLicenseConcluded: "NOASSERTION", PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: "NOASSERTION",
		PackageExternalReferences: []*v2_3.PackageExternalReference{purl(debug.Module{Path: p.info.Main.Path, Version: r.version})},
		PrimaryPackagePurpose:     "APPLICATION", IsFilesAnalyzedTagPresent: true,
	}
}

// linkedModules returns the standard library and the modules that a program contains.
func linkedModules(info *debug.BuildInfo) []debug.Module {
	list := []debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		list = append(list, *m)
	}
	return list
}

// modulePackage returns the package of a module. THIRD_PARTY_NOTICES.md has its licence.
func modulePackage(m debug.Module) *v2_3.Package {
	location := "https://go.dev/dl/go" + m.Version + ".src.tar.gz" // of the standard library
	if path, err := module.EscapePath(m.Path); err == nil {
		location = "https://proxy.golang.org/" + path + "/@v/" + m.Version + ".zip"
	}
	return &v2_3.Package{
		PackageName: m.Path, PackageVersion: m.Version, PackageSPDXIdentifier: elementID(m.Path, m.Version),
		PackageSupplier:         &common.Supplier{SupplierType: "NOASSERTION", Supplier: "NOASSERTION"},
		PackageDownloadLocation: location,
		PackageLicenseConcluded: "NOASSERTION", PackageLicenseDeclared: "NOASSERTION", PackageCopyrightText: "NOASSERTION",
		PackageExternalReferences: []*v2_3.PackageExternalReference{purl(m)},
		PrimaryPackagePurpose:     "LIBRARY", IsFilesAnalyzedTagPresent: true,
	}
}

// purl returns the package URL of a module.
func purl(m debug.Module) *v2_3.PackageExternalReference {
	return &v2_3.PackageExternalReference{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")}
}

// unsafeID matches what an identifier of SPDX may not contain.
var unsafeID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// elementID returns the identifier of a package.
func elementID(parts ...string) common.ElementID {
	return common.ElementID("Package-" + unsafeID.ReplaceAllString(strings.Join(parts, "-"), "-"))
}
