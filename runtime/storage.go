package runtime

import "cmp"

// StorageLimits limits what agents may store. A zero limit means the default.
type StorageLimits struct {
	WorkspaceBytes int64 // all files of one workspace; default 1 GiB
	WorkspaceFiles int64 // files and directories of one workspace; default 100,000
	ArtifactBytes  int64 // content of one artifact; default 10 MiB
	DiskReserve    int64 // free space of the disk below which no work begins; default 256 MiB or a quarter of the disk, whichever is less

	// Bytes recorded: events, artifacts and recordings.
	RecordedPerTask   int64 // default 1 GiB
	RecordedPerCaller int64 // of an external caller and its tasks; default 16 GiB
	Recorded          int64 // of the organization; default 256 GiB
}

var defaultStorage = StorageLimits{
	WorkspaceBytes: 1 << 30, WorkspaceFiles: 100_000, ArtifactBytes: 10 << 20,
	RecordedPerTask: 1 << 30, RecordedPerCaller: 16 << 30, Recorded: 256 << 30,
}

// orDefault returns s with the limits of other in place of its zero limits.
func (s StorageLimits) orDefault(other StorageLimits) StorageLimits {
	return StorageLimits{
		WorkspaceBytes: cmp.Or(s.WorkspaceBytes, other.WorkspaceBytes),
		WorkspaceFiles: cmp.Or(s.WorkspaceFiles, other.WorkspaceFiles),
		ArtifactBytes:  cmp.Or(s.ArtifactBytes, other.ArtifactBytes),
		DiskReserve:    cmp.Or(s.DiskReserve, other.DiskReserve),

		RecordedPerTask:   cmp.Or(s.RecordedPerTask, other.RecordedPerTask),
		RecordedPerCaller: cmp.Or(s.RecordedPerCaller, other.RecordedPerCaller),
		Recorded:          cmp.Or(s.Recorded, other.Recorded),
	}
}
