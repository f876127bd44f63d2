package runtime

import "cmp"

// Storage is how much agents may keep. A zero limit is the default.
type Storage struct {
	WorkspaceBytes int64 // of all files in one workspace; 1 GiB
	WorkspaceFiles int64 // and folders; 100,000
	ArtifactBytes  int64 // of one artifact's content; 8 MiB
}

var defaultStorage = Storage{WorkspaceBytes: 1 << 30, WorkspaceFiles: 100_000, ArtifactBytes: 8 << 20}

// or fills in what s does not say.
func (s Storage) or(other Storage) Storage {
	return Storage{
		WorkspaceBytes: cmp.Or(s.WorkspaceBytes, other.WorkspaceBytes),
		WorkspaceFiles: cmp.Or(s.WorkspaceFiles, other.WorkspaceFiles),
		ArtifactBytes:  cmp.Or(s.ArtifactBytes, other.ArtifactBytes),
	}
}
