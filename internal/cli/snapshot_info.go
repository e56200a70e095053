package cli

import (
	"github.com/spf13/cobra"

	"memorymark/internal/recording"
	"memorymark/internal/report"
)

func newSnapshotInfo(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "info FILE",
		Short: "What a snapshot holds: devices, peaks, categories, failures, settings",
		Long: "Prints what a snapshot holds: its devices and events, the peaks of requested,\n" +
			"allocated and reserved memory, what the memory was for at the peak, and each\n" +
			"out-of-memory error with what was live then.\n\n" +
			"Categories are inferred from stacks, optimizer steps and lifetimes; what cannot be\n" +
			"told stays unknown.",
		Example: "  memorymark snapshot info oom.pickle",
		Args:    exactArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := e.openSnapshot(c.Context(), args[0])
			if err != nil {
				return err
			}
			info := &recording.Info{
				File: args[0], Protocol: s.Protocol, Encoding: s.Encoding, Unknown: s.Unknown,
				Devices: []recording.DeviceInfo{},
			}
			for _, t := range recording.Devices(s) {
				d, err := recording.New(t).Info()
				if err != nil {
					return err
				}
				info.Devices = append(info.Devices, *d)
			}
			return e.print(info, report.Info{Info: info}.Write)
		},
	}
}
