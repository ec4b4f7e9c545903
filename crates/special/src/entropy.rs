//! Products with logarithms, relative entropies, and the Huber loss.

use cuprum_core::numpy;

with_logarithm! {
    #[helper]
    fn xlogy_f64(x: f64, y: f64) -> f64 {
        if x == 0.0 && !y.is_nan() { 0.0 } else { x * y.ln() }
    }

    #[helper]
    fn xlog1py_f64(x: f64, y: f64) -> f64 {
        if x == 0.0 && !y.is_nan() { 0.0 } else { x * y.ln_1p() }
    }

    #[helper]
    fn entr_f64(x: f64) -> f64 {
        if x > 0.0 || x.is_nan() {
            return -x * x.ln();
        }
        if x == 0.0 { 0.0 } else { -INFINITY }
    }

    /// Returns `log(x / y)` for positive numbers, also if `x / y` overflows or underflows.
    #[helper]
    fn log_quotient(x: f64, y: f64) -> f64 {
        let quotient = x / y;
        if quotient > 0.5 && quotient < 2.0 {
            return ((x - y) / y).ln_1p();
        }
        if quotient > 1e-300 && quotient < INFINITY {
            return quotient.ln();
        }
        x.ln() - y.ln()
    }

    #[helper]
    fn rel_entr_f64(x: f64, y: f64) -> f64 {
        if x.is_nan() || y.is_nan() {
            return x + y;
        }
        if x > 0.0 && y > 0.0 {
            return x * log_quotient(x, y);
        }
        if x == 0.0 && y >= 0.0 { 0.0 } else { INFINITY }
    }

    #[helper]
    fn kl_div_f64(x: f64, y: f64) -> f64 {
        if x.is_nan() || y.is_nan() {
            return x + y;
        }
        if x > 0.0 && y > 0.0 {
            let step = (y - x) / x;
            if step < 1.0 && step > -0.5 {
                return -x * log1p_minus_x(step);
            }
            return x * log_quotient(x, y) - x + y;
        }
        if x == 0.0 && y >= 0.0 { y } else { INFINITY }
    }

    #[helper]
    fn huber_f64(delta: f64, r: f64) -> f64 {
        if delta < 0.0 {
            return INFINITY;
        }
        if r.abs() <= delta { 0.5 * r * r } else { delta * (r.abs() - 0.5 * delta) }
    }

    /// Returns `x * log(y)`, and 0 where x is 0 (`scipy.special.xlogy`), elementwise.
    ///
    /// # Errors
    /// Complex numbers, and shapes that do not broadcast.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::xlogy(0.0, 0.0)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.xlogy(x, y, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn xlogy<T: Double>(x: T, y: T) -> T {
        xlogy_f64(x as f64, y as f64) as T
    }

    /// Returns `x * log(1 + y)`, and 0 where x is 0 (`scipy.special.xlog1py`), elementwise.
    ///
    /// # Errors
    /// Complex numbers, and shapes that do not broadcast.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::xlog1py(0.0, -1.0)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.xlog1py(x, y, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn xlog1py<T: Double>(x: T, y: T) -> T {
        xlog1py_f64(x as f64, y as f64) as T
    }

    /// Returns `-x * log(x)`, the terms of an entropy (`scipy.special.entr`), elementwise; 0 at 0 and -inf for negative x.
    ///
    /// # Errors
    /// Complex numbers.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::entr(1.0)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.entr(x, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn entr<T: Single>(x: T) -> T {
        entr_f64(x as f64) as T
    }

    /// Returns `x * log(x / y)`, the terms of a relative entropy (`scipy.special.rel_entr`), elementwise.
    ///
    /// The result is 0 for x = 0 and y >= 0, and infinite for other pairs that are not positive.
    ///
    /// # Errors
    /// Complex numbers, and shapes that do not broadcast.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::rel_entr(0.0, 2.0)?.item()?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.rel_entr(x, y, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn rel_entr<T: Single>(x: T, y: T) -> T {
        rel_entr_f64(x as f64, y as f64) as T
    }

    /// Returns `x * log(x / y) - x + y`, the terms of a Kullback-Leibler divergence (`scipy.special.kl_div`), elementwise.
    ///
    /// The result is y for x = 0 and y >= 0, and infinite for other pairs that are not positive. It is accurate for x near y.
    ///
    /// # Errors
    /// Complex numbers, and shapes that do not broadcast.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::kl_div(0.0, 2.0)?.item()?, 2.0);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.kl_div(x, y, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn kl_div<T: Single>(x: T, y: T) -> T {
        kl_div_f64(x as f64, y as f64) as T
    }

    /// Returns the Huber loss: `r^2 / 2` for |r| <= delta, otherwise `delta * (|r| - delta / 2)` (`scipy.special.huber`), elementwise.
    ///
    /// The result is infinite for negative delta.
    ///
    /// # Errors
    /// Complex numbers, and shapes that do not broadcast.
    ///
    /// # Examples
    /// ```
    /// # fn main() -> cuprum_core::Result<()> {
    /// assert_eq!(cuprum_special::huber(1.0, 2.0)?.item()?, 1.5);
    /// # Ok(())
    /// # }
    /// ```
    #[numpy("special.huber(delta, r, /, out=None, *, where=True, casting='same_kind', order='K', dtype=None)")]
    pub fn huber<T: Single>(delta: T, r: T) -> T {
        huber_f64(delta as f64, r as f64) as T
    }
}
