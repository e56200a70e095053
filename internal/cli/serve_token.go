package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"memorymark/internal/report"
	"memorymark/internal/token"
)

func newToken(e *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Manage the access tokens of a server",
		Long: "Creates, lists and deletes the tokens that memorymark serve requires on any address but\n" +
			"loopback. A token is shown once, when it is created; only its hash is stored, in the data\n" +
			"folder. A running server notices changes at once.",
		Example: "  memorymark serve token create alice\n" +
			"  memorymark serve token create gpu-7 --role worker",
		Args: cobra.ArbitraryArgs,
		RunE: runGroup,
	}
	c.AddCommand(newTokenCreate(e), newTokenList(e), newTokenDelete(e))
	return c
}

func newTokenCreate(e *env) *cobra.Command {
	var data, role string
	var lasts time.Duration
	c := &cobra.Command{
		Use:     "create NAME",
		Short:   "Create a token and show it once",
		Example: "  memorymark serve token create alice",
		Args:    exactArgs("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := openTokens(data)
			if err != nil {
				return err
			}
			now := time.Now()
			var expires time.Time
			switch {
			case lasts < 0:
				return badUsage("write it as --expires 720h", "--expires is %v; it must be a time from now on", lasts)
			case lasts > 0:
				expires = now.Add(lasts)
			}
			secret, err := l.Create(args[0], token.Role(role), now, expires)
			if err != nil {
				return badUsage("", "%w", err)
			}
			made := struct {
				Name  string `json:"name"`
				Role  string `json:"role"`
				Token string `json:"token"`
			}{args[0], role, secret}
			return e.print(made, func(w io.Writer, _ int) error {
				_, err := fmt.Fprintln(w, secret)
				return err
			})
		},
	}
	addDataFlag(c, &data)
	c.Flags().DurationVar(&lasts, "expires", 0, "`time` after which the token stops working, such as 720h (default: never)")
	c.Flags().StringVar(&role, "role", string(token.User), "`role`: user may do everything, worker only what a worker needs")
	return c
}

func newTokenList(e *env) *cobra.Command {
	var data string
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the tokens",
		Example: "  memorymark serve token list",
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			l, err := openTokens(data)
			if err != nil {
				return err
			}
			list := report.NewTokens(l.Tokens)
			return e.print(list, list.Write)
		},
	}
	addDataFlag(c, &data)
	return c
}

func newTokenDelete(_ *env) *cobra.Command {
	var data string
	c := &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a token; its holder loses access at once",
		Example: "  memorymark serve token delete alice",
		Args:    exactArgs("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := openTokens(data)
			if err != nil {
				return err
			}
			if err := l.Delete(args[0]); err != nil {
				return badUsage("memorymark serve token list lists them", "%w", err)
			}
			return nil
		},
	}
	addDataFlag(c, &data)
	return c
}

// openTokens reads the tokens of a data folder.
func openTokens(folder string) (*token.List, error) {
	if err := checkData(folder); err != nil {
		return nil, err
	}
	return token.Open(tokenFile(folder))
}
