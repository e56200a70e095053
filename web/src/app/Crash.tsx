import { Component, type ReactNode } from 'react';
import { Problem } from '../api/problem';
import { Button } from '../ui/Button';
import { ErrorBox } from '../ui/ErrorBox';
import { NotLoaded } from './fetched';

const notLoaded = 'The other pages still work. This one is loaded again when you return to it, or when the server is back.';

interface Props {
  /** another place, or a server that is back, is a reason to try again */
  at: string;
  children: ReactNode;
}

/** Crash shows what broke in a page instead of nothing; the rest of the page stays, and another place starts fresh. */
export class Crash extends Component<Props, { error?: unknown }> {
  override state: { error?: unknown } = {};

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  private readonly again = () => {
    if (this.state.error instanceof NotLoaded) this.state.error.forget();
    this.setState({ error: undefined });
  };

  override componentDidUpdate({ at }: Props) {
    if (at !== this.props.at && this.state.error !== undefined) this.again();
  }

  override render() {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    if (!(error instanceof NotLoaded)) return <ErrorBox problem={Problem.of(error)} title="This page crashed" onDismiss={this.again} />;
    return (
      <ErrorBox problem={new Problem(-1, error.message, [], notLoaded)} title="This page could not be loaded">
        <div className="flex gap-2">
          <Button size="small" onClick={this.again}>
            Try again
          </Button>
          {/* A newer program has other files than the page that is open. */}
          <Button size="small" look="quiet" onClick={() => location.reload()}>
            Reload MemoryMark
          </Button>
        </div>
      </ErrorBox>
    );
  }
}
