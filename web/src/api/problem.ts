/** ProblemDocument is the server's RFC 9457 answer to what it could not do. */
export interface ProblemDocument {
  title?: string;
  detail?: string;
  errors?: { location?: string; message?: string }[] | null;
}

/** Detail is one thing wrong with a request; key is the workload's key, if it is about one. */
export interface Detail {
  key?: string;
  message: string;
}

/** Problem is a failure in words for people: what happened, and what to do. */
export class Problem extends Error {
  override name = 'Problem';
  readonly status: number;
  readonly details: Detail[];
  private readonly advised?: string;

  /** The advice is what the status says of requests in general, unless the caller knows better. */
  constructor(status: number, message: string, details: Detail[] = [], advice?: string) {
    super(message);
    this.status = status;
    this.details = details;
    this.advised = advice;
  }

  static lost(): Problem {
    return new Problem(0, 'The server does not answer.');
  }

  static from(status: number, document: ProblemDocument | undefined): Problem {
    const details = (document?.errors ?? []).map(({ location, message }) => ({
      key: keyAt(location ?? ''),
      message: message ?? '',
    }));
    const said = document?.detail && document.detail !== 'validation failed' ? document.detail : undefined;
    return new Problem(status, said ?? summary(details) ?? document?.title ?? `The server answered ${status}.`, details);
  }

  static of(error: unknown): Problem {
    if (error instanceof Problem) return error;
    return new Problem(-1, error instanceof Error ? error.message : String(error));
  }

  get isLost(): boolean {
    return this.status === 0;
  }

  /** nothing is wrong with what was asked, but it does not fit */
  get isTooLarge(): boolean {
    return this.status === 422 && this.details.length === 0;
  }

  get needsToken(): boolean {
    return this.status === 401;
  }

  /** What to do about it. */
  get advice(): string {
    switch (true) {
      case this.advised !== undefined:
        return this.advised;
      case this.isLost:
        return 'Start it with "memorymark serve". This page continues as soon as it answers.';
      case this.needsToken:
        return 'Log in with a token from "memorymark serve token create NAME".';
      case this.status === 404:
        return 'It may have been deleted. The history lists all analyses.';
      case this.status === 422 || this.status === 400:
        return this.details.length > 0
          ? 'Change it, and the answer updates.'
          : 'Choose another card or other settings, and the answer updates.';
      case this.status === 429 || this.status === 503:
        return 'The server is busy. Wait a moment and try again.';
      default:
        return 'Try again. If it happens again, look into the server\'s log.';
    }
  }
}

function summary(details: Detail[]): string | undefined {
  return details.length > 0 ? details.map((d) => d.message).join('; ') : undefined;
}

// keyAt is the workload's key at a place such as body.batch or body.workload.config.hidden_size.
function keyAt(location: string): string | undefined {
  return /^body\.(?:workload\.)?([a-z_]+)/.exec(location)?.[1];
}
