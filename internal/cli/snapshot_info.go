package cli

import (
	"github.com/spf13/cobra"

	"memorymark/internal/recording"
	"memorymark/internal/report"
)

func newSnapshotInfo(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "info FILE",
		Short: "Summarize a snapshot: devices, peaks, categories, failures, settings",
		Long: "Prints the devices and events of a snapshot, the peaks of requested, allocated and\n" +
			"reserved memory, what the memory was used for at the peak, and each out-of-memory error\n" +
			"with what was live at that moment.\n\n" +
			"Categories are inferred from stacks, optimizer steps and lifetimes; what cannot be\n" +
			"inferred stays unknown.",
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
