//! User-defined operations, each written once for CPU and GPU, and functions composed of them. The bench suite `kernels` times them.

use cuprum::{AxisOptions, NdArray, Result, axis, s};

cuprum::kernel! {
    /// Number of steps, at most `limit`, until the orbit of `re + i im` leaves the circle of radius 2.
    pub fn mandelbrot<T: Float>(re: T, im: T, limit: i32) -> i32 {
        let mut x = re;
        let mut y = im;
        let mut steps = 0;
        for _ in 0..limit {
            let yy = y * y;
            if x.mul_add(x, yy) > 4.0 {
                break;
            }
            y = (x + x).mul_add(y, im);
            x = x.mul_add(x, re - yy);
            steps += 1;
        }
        steps
    }

    /// One explicit step of the heat equation at an element, from its four neighbours.
    pub fn diffuse<T: Float>(here: T, north: T, south: T, west: T, east: T, rate: T) -> T {
        here + rate * (north + south + west + east - 4.0 * here)
    }

    /// Cumulative distribution of the standard normal (Abramowitz and Stegun, 26.2.17; absolute error below 7.5e-8).
    fn normal_cdf<T: Float>(x: T) -> T {
        let k = 1.0 / (1.0 + 0.2316419 * x.abs());
        let poly = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))));
        let tail = (-0.5 * x * x).exp() * poly / (2.0 * PI).sqrt();
        if x < 0.0 { tail } else { 1.0 - tail }
    }

    /// Price of a European call option (Black and Scholes, 1973).
    pub fn black_scholes<T: Float>(spot: T, strike: T, years: T, interest: T, volatility: T) -> T {
        let spread = volatility * years.sqrt();
        let d = ((spot / strike).ln() + (interest + 0.5 * volatility * volatility) * years) / spread;
        spot * normal_cdf(d) - strike * (-interest * years).exp() * normal_cdf(d - spread)
    }

    /// Index of the centre nearest to the point (x, y); the rows of `centres` are x, y.
    pub fn nearest_centre<T: Float>(x: T, y: T, centres: &[T]) -> i32 {
        let mut nearest = 0;
        let mut least = INFINITY;
        for c in 0..centres.len() as i32 / 2 {
            let dx = x - centres[2 * c];
            let dy = y - centres[2 * c + 1];
            let distance = dx.mul_add(dx, dy * dy);
            if distance < least {
                least = distance;
                nearest = c;
            }
        }
        nearest
    }

    /// Larger of two numbers.
    #[reduction(identity = -INFINITY)]
    pub fn largest<T: Float>(a: T, b: T) -> T {
        a.max(b)
    }

    /// Exponential of `x - top`.
    pub fn exp_from<T: Float>(x: T, top: T) -> T {
        (x - top).exp()
    }
}

/// Returns one step of the heat equation on the interior of a field with fixed border: `[m, n]` gives `[m - 2, n - 2]`.
pub fn heat_step(field: &NdArray, rate: f64) -> Result<NdArray> {
    let here = field.index(s![1..-1, 1..-1])?;
    let (north, south) = (field.index(s![..-2, 1..-1])?, field.index(s![2.., 1..-1])?);
    let (west, east) = (field.index(s![1..-1, ..-2])?, field.index(s![1..-1, 2..])?);
    diffuse(here, north, south, west, east, rate)
}

/// Returns the softmax of each row. Two passes read the input, and one divides.
pub fn softmax(a: &NdArray) -> Result<NdArray> {
    let rows: AxisOptions = axis(-1).keepdims();
    let e = exp_from(a, largest(a, rows.clone())?)?;
    let total = e.sum(rows)?;
    e.divide(total)
}
