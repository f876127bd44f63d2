package runtime

import "cmp"

// Storage limits what agents may store. A zero limit means the default.
type Storage struct {
	WorkspaceBytes int64 // all files of one workspace; default 1 GiB
	WorkspaceFiles int64 // files and directories of one workspace; default 100,000
	ArtifactBytes  int64 // content of one artifact; default 8 MiB
}

var defaultStorage = Storage{WorkspaceBytes: 1 << 30, WorkspaceFiles: 100_000, ArtifactBytes: 8 << 20}

// orDefault returns s with its zero limits replaced by those of other.
func (s Storage) orDefault(other Storage) Storage {
	return Storage{
		WorkspaceBytes: cmp.Or(s.WorkspaceBytes, other.WorkspaceBytes),
		WorkspaceFiles: cmp.Or(s.WorkspaceFiles, other.WorkspaceFiles),
		ArtifactBytes:  cmp.Or(s.ArtifactBytes, other.ArtifactBytes),
	}
}
