import { Component, type ReactNode } from 'react';
import { Problem } from '../api/problem';
import { ErrorBox } from '../ui/ErrorBox';

/** Crash shows what broke in a page instead of nothing; leaving the page or dismissing the box tries again. */
export class Crash extends Component<{ children: ReactNode }, { error?: unknown }> {
  override state: { error?: unknown } = {};

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  private readonly again = () => this.setState({ error: undefined });

  override componentDidMount() {
    window.addEventListener('popstate', this.again);
  }

  override componentWillUnmount() {
    window.removeEventListener('popstate', this.again);
  }

  override render() {
    if (this.state.error === undefined) return this.props.children;
    return <ErrorBox problem={Problem.of(this.state.error)} title="This page crashed" onDismiss={this.again} />;
  }
}
