import type { ReactNode } from 'react';
import type { Answer, Schemas } from '../api/client';
import { count, dollars, duration, price, rate } from '../format';
import { AmountInput, NumberInput } from '../ui/Inputs';
import { Panel } from '../ui/Panel';
import type { QuestionState } from '../workload/useQuestion';

interface Props {
  answer: Answer;
  state: QuestionState;
}

/** Cost says how fast training is, what it costs, and what a run takes. The server computes. */
export function Cost({ answer, state: { question, ask } }: Props) {
  const { bill } = answer;
  const text = bill?.tokens_per_second !== undefined;
  return (
    <Panel title="Speed and cost">
      {bill && <Bill bill={bill} />}
      <div className="mt-5 grid grid-cols-2 gap-4">
        <NumberInput
          label="Dollars per hour"
          value={question.price_per_hour ?? answer.price_per_hour}
          step="any"
          least={0}
          placeholder="not known"
          onChange={(price_per_hour) => ask({ price_per_hour })}
        />
        <NumberInput
          label="GPU hours per year"
          value={question.hours_per_year ?? answer.hours_per_year}
          step="any"
          least={1}
          onChange={(hours_per_year) => ask({ hours_per_year })}
        />
        {text ? (
          <AmountInput label="Tokens to train on" unit="tokens" value={question.run_tokens} placeholder="such as 1B" onChange={(run_tokens) => ask({ run_tokens })} />
        ) : (
          <AmountInput label="Samples to train on" unit="samples" value={question.run_samples} placeholder="such as 1M" onChange={(run_samples) => ask({ run_samples })} />
        )}
      </div>
      <p className="mt-3 text-xs text-muted">{priceSource(question.price_per_hour, answer)}</p>
    </Panel>
  );
}

function priceSource(own: number | undefined, { price_source: source, price_per_hour: known }: Answer): string {
  if (own !== undefined) return 'Your own price.';
  return known !== undefined && source ? `Price: ${source}.` : 'No price of this card is known; enter yours to see costs.';
}

function Bill({ bill }: { bill: Schemas['Bill'] }) {
  const { tokens_per_second: tokens, samples_per_second: samples = 0, usd_per_million_tokens: perTokens, usd_per_million_samples: perSamples, run } = bill;
  const million = tokens === undefined ? perSamples : perTokens;
  const what = tokens === undefined ? 'samples' : 'tokens';
  return (
    <dl className="grid grid-cols-[minmax(0,1fr)_auto] gap-x-4 gap-y-2 text-sm">
      <Line name={`At batch ${count(bill.batch_size)}`}>
        {tokens === undefined ? `${rate(samples)} samples/s` : `${rate(tokens)} tokens/s`}
      </Line>
      {million !== undefined && <Line name={`A million ${what}`}>{price(million)}</Line>}
      {run && (
        <Line name={`A run of ${count(run.tokens ?? run.samples ?? 0)} ${what}`}>
          {duration(run.hours)}
          {run.dollars !== undefined && `, ${dollars(run.dollars)}`}
        </Line>
      )}
    </dl>
  );
}

function Line({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-muted">{name}</dt>
      <dd className="text-right font-medium">{children}</dd>
    </>
  );
}
